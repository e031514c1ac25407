// SPDX-License-Identifier: Apache-2.0
#include "framework/parallel/random_rows.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>

#include <bit>
#include <cmath>

#include "framework/base/random.h"
#include "framework/kernels/vector_random.h"

namespace phalanx {
namespace {

thread_local std::optional<RandomKey> innermost;

constexpr std::uint64_t kGamma = 0x9e3779b97f4a7c15;

constexpr std::int64_t kElementsAThread = 1 << 15;

// The following computes the numbers of vector::dropout_factors() on devices, whose tensors have no unsigned 64-bit
// integers. Sums and products of int64 have the same bits; shifts bring in copies of the sign, which are masked out.

std::int64_t bits(std::uint64_t number) { return std::bit_cast<std::int64_t>(number); }

at::Tensor shifted(const at::Tensor& z, std::int64_t by) {
  return z.bitwise_right_shift(by).bitwise_and_((std::int64_t{1} << (64 - by)) - 1);
}

at::Tensor finalized(const at::Tensor& sum) {
  at::Tensor z = sum.bitwise_xor(shifted(sum, 30)).mul_(bits(0xbf58476d1ce4e5b9));
  z = z.bitwise_xor(shifted(z, 27)).mul_(bits(0x94d049bb133111eb));
  return z.bitwise_xor(shifted(z, 31));
}

// Returns numbers of these streams. `counters` is int64.
at::Tensor numbers(const at::Tensor& streams, const at::Tensor& counters) {
  return finalized(streams + (counters + 1) * bits(kGamma));
}

// Computes mix() of framework/base/random.h.
at::Tensor mixed(const at::Tensor& seeds, const at::Tensor& streams) {
  return numbers(finalized(seeds + bits(kGamma)), streams);
}

at::Tensor factors_on_device(const at::Tensor& like, double rate, std::uint64_t layer, const RandomKey& key) {
  const auto rows = like.size(0), count = like.numel() / rows;
  const auto kind = like.options().dtype(at::kLong).requires_grad(false);
  const at::Tensor step = key.step_on_device.defined() ? key.step_on_device : at::full({}, bits(key.step), kind);
  const at::Tensor of_layer = mixed(step, at::full({}, bits(layer), kind));
  const at::Tensor of_rows = mixed(of_layer, at::arange(key.first_row, key.first_row + rows, kind)).unsqueeze(1);
  const at::Tensor drawn = numbers(of_rows, at::arange((count + 1) / 2, kind));
  const at::Tensor halves = at::stack({drawn.bitwise_and(std::int64_t{0xffffffff}), shifted(drawn, 32)}, 2);
  const at::Tensor kept = halves.reshape({rows, -1}).narrow(1, 0, count).ge(std::llround(rate * 0x1p32));
  return kept.to(at::kFloat).mul_(static_cast<float>(1 / (1 - rate))).view(like.sizes()).to(like.scalar_type());
}

}  // namespace

RandomRows::RandomRows(std::optional<RandomKey> key) : before_(innermost) { innermost = key; }

RandomRows::~RandomRows() { innermost = before_; }

std::optional<RandomKey> RandomRows::current() { return innermost; }

at::Tensor dropout_factors(const at::Tensor& like, double rate, std::uint64_t layer, const RandomKey& key) {
  if (like.numel() == 0) return at::empty(like.sizes(), like.options().requires_grad(false));
  if (!like.is_cpu()) return factors_on_device(like, rate, layer, key);
  at::Tensor factors = at::empty(like.sizes(), at::kFloat);
  const auto rows = factors.size(0), count = factors.numel() / rows;
  const auto dropped_below = static_cast<std::uint64_t>(std::llround(rate * 0x1p32));
  const auto kept = static_cast<float>(1 / (1 - rate));
  const std::uint64_t streams = mix(key.step, layer);
  float* const values = factors.mutable_data_ptr<float>();
  at::parallel_for(0, rows, kElementsAThread / count + 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto row = begin; row < end; ++row) {
      vector::dropout_factors(values + row * count, count,
                              mix(streams, static_cast<std::uint64_t>(key.first_row + row)), dropped_below, kept);
    }
  });
  return factors.to(like.options());
}

}  // namespace phalanx
