// SPDX-License-Identifier: Apache-2.0
#include "framework/partition/bucket_size.h"

#include <ATen/ops/full.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <vector>

#include "framework/base/quantile.h"
#include "framework/comm/operations/measured_inputs.h"

namespace phalanx {
namespace {

// Bytes that are measured. Devices are not busy with less.
struct Sizes {
  std::int64_t small, large;
};
constexpr Sizes kOnCpu{16 << 10, 1 << 20}, kOnDevices{256 << 10, 16 << 20};
constexpr std::int64_t kLeast = 64 << 10;
constexpr int kRepetitions = 9;

double seconds_of_one(Communicator& group, const at::Tensor& values) {
  group.barrier().wait();
  const auto start = std::chrono::steady_clock::now();
  group.all_reduce(values, Reduction::kSum).synchronize();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Returns the median time of the slowest rank, after one run to warm up.
double seconds_of(Communicator& group, std::int64_t bytes, const c10::Device& device) {
  const at::Tensor values =
      group.allocate({bytes / static_cast<std::int64_t>(sizeof(float))}, at::device(device).dtype(at::kFloat));
  values.zero_();
  seconds_of_one(group, values);
  std::vector<double> times(kRepetitions);
  for (auto& time : times) time = seconds_of_one(group, values);
  const at::Tensor slowest = at::full({1}, median(times), at::kDouble);
  const MeasuredInputs measured;
  group.all_reduce(slowest, Reduction::kMax).wait();
  return slowest.item<double>();
}

constexpr std::int64_t kFew = 25 << 20;
constexpr ReductionTime kGigabit{.latency = 175e-6, .seconds_per_byte = 9.2e-3 / (1 << 20)};

}  // namespace

ReductionTime measure_all_reduce(Communicator& group, c10::Device device) {
  const Sizes bytes = device.is_cpu() ? kOnCpu : kOnDevices;
  const double small = seconds_of(group, bytes.small, device), large = seconds_of(group, bytes.large, device);
  const double per_byte = std::max(0.0, (large - small) / static_cast<double>(bytes.large - bytes.small));
  return {.latency = std::max(0.0, small - per_byte * static_cast<double>(bytes.small)), .seconds_per_byte = per_byte};
}

std::int64_t best_bucket_bytes(std::int64_t bytes, const ReductionTime& time) {
  const auto all = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(std::max(bytes, kLeast))));
  if (time.seconds_per_byte <= 0) return all;
  const double best = std::sqrt(static_cast<double>(bytes) * time.latency / time.seconds_per_byte);
  const double power = std::exp2(std::round(std::log2(std::max(best, static_cast<double>(kLeast)))));
  return power < static_cast<double>(all) ? static_cast<std::int64_t>(power) : all;
}

std::int64_t default_bucket_bytes(std::int64_t bytes, bool overlapped, c10::Device device) {
  return overlapped && device.is_cpu() ? std::min(best_bucket_bytes(bytes, kGigabit), kFew) : kFew;
}

}  // namespace phalanx
