// SPDX-License-Identifier: Apache-2.0
#include "framework/partition/bucket_size.h"

#include <ATen/ops/full.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <vector>

namespace phalanx {
namespace {

constexpr std::int64_t kSmall = 16 << 10, kLarge = 1 << 20;  // bytes
constexpr std::int64_t kLeast = 64 << 10;
constexpr int kRepetitions = 9;

double seconds_of_one(Communicator& group, const at::Tensor& values) {
  group.barrier().wait();
  const auto start = std::chrono::steady_clock::now();
  group.all_reduce(values, Reduction::kSum).wait();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Returns the median time of the slowest rank, after one run to warm up.
double seconds_of(Communicator& group, std::int64_t bytes) {
  const at::Tensor values = group.allocate({bytes / static_cast<std::int64_t>(sizeof(float))}, at::kFloat);
  values.zero_();
  seconds_of_one(group, values);
  std::vector<double> times(kRepetitions);
  for (auto& time : times) time = seconds_of_one(group, values);
  std::ranges::nth_element(times, times.begin() + kRepetitions / 2);
  const at::Tensor slowest = at::full({1}, times[kRepetitions / 2], at::kDouble);
  group.all_reduce(slowest, Reduction::kMax).wait();
  return slowest.item<double>();
}

constexpr std::int64_t kFew = 25 << 20;
constexpr ReductionTime kGigabit{.latency = 175e-6, .seconds_per_byte = 9.2e-3 / (1 << 20)};

}  // namespace

ReductionTime measure_all_reduce(Communicator& group) {
  const double small = seconds_of(group, kSmall), large = seconds_of(group, kLarge);
  const double per_byte = std::max(0.0, (large - small) / static_cast<double>(kLarge - kSmall));
  return {.latency = std::max(0.0, small - per_byte * kSmall), .seconds_per_byte = per_byte};
}

std::int64_t best_bucket_bytes(std::int64_t bytes, const ReductionTime& time) {
  const auto all = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(std::max(bytes, kLeast))));
  if (time.seconds_per_byte <= 0) return all;
  const double best = std::sqrt(static_cast<double>(bytes) * time.latency / time.seconds_per_byte);
  const double power = std::exp2(std::round(std::log2(std::max(best, static_cast<double>(kLeast)))));
  return power < static_cast<double>(all) ? static_cast<std::int64_t>(power) : all;
}

std::int64_t default_bucket_bytes(std::int64_t bytes, bool overlapped) {
  return overlapped ? std::min(best_bucket_bytes(bytes, kGigabit), kFew) : kFew;
}

}  // namespace phalanx
