// SPDX-License-Identifier: Apache-2.0
#include "framework/parallel/random_rows.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>

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

at::Tensor factors_on_device(const at::Tensor& like, std::int64_t groups, const GroupsPart& part, double rate,
                             std::uint64_t layer, const RandomKey& key) {
  const auto rows = like.size(0), count = like.numel() / (rows * groups);
  const auto kind = like.options().dtype(at::kLong).requires_grad(false);
  const at::Tensor step = key.step_on_device.defined() ? key.step_on_device : at::full({}, bits(key.step), kind);
  const at::Tensor of_layer = mixed(step, at::full({}, bits(layer), kind));
  const at::Tensor of_rows = mixed(of_layer, at::arange(key.first_row, key.first_row + rows, kind)).view({-1, 1, 1});
  // The first element of each group, and the numbers of which the group's elements are halves.
  const at::Tensor first = at::arange(part.first_group, part.first_group + groups, kind)
                               .mul_(part.group_elements)
                               .add_(part.first_element)
                               .unsqueeze(1);
  const at::Tensor drawn = numbers(of_rows, shifted(first, 1) + at::arange(count / 2 + 1, kind));
  const at::Tensor halves = at::stack({drawn.bitwise_and(std::int64_t{0xffffffff}), shifted(drawn, 32)}, 3).flatten(2);
  const auto beginning_at = [&](std::int64_t half) { return halves.narrow(2, half, count); };
  const bool same_half = groups == 1 || part.group_elements % 2 == 0;
  const at::Tensor elements =
      same_half ? beginning_at((part.first_group * part.group_elements + part.first_element) % 2)
                : at::where(first.bitwise_and(std::int64_t{1}).ne(0), beginning_at(1), beginning_at(0));
  const at::Tensor kept = elements.ge(std::llround(rate * 0x1p32));
  return kept.to(at::kFloat).mul_(static_cast<float>(1 / (1 - rate))).reshape(like.sizes()).to(like.scalar_type());
}

// `groups` is the number of groups in each row of the part.
at::Tensor factors_of_part(const at::Tensor& like, std::int64_t groups, const GroupsPart& part, double rate,
                           std::uint64_t layer, const RandomKey& key) {
  if (!like.is_cpu()) return factors_on_device(like, groups, part, rate, layer, key);
  at::Tensor factors = at::empty(like.sizes(), at::kFloat);
  const auto runs = like.size(0) * groups, count = factors.numel() / runs;
  const auto dropped_below = static_cast<std::uint64_t>(std::llround(rate * 0x1p32));
  const auto kept = static_cast<float>(1 / (1 - rate));
  const std::uint64_t streams = mix(key.step, layer);
  float* const values = factors.mutable_data_ptr<float>();
  at::parallel_for(0, runs, kElementsAThread / count + 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto run = begin; run < end; ++run) {
      const auto row = run / groups, group = part.first_group + run % groups;
      vector::dropout_factors(values + run * count, group * part.group_elements + part.first_element, count,
                              mix(streams, static_cast<std::uint64_t>(key.first_row + row)), dropped_below, kept);
    }
  });
  return factors.to(like.options());
}

at::Tensor no_factors(const at::Tensor& like) { return at::empty(like.sizes(), like.options().requires_grad(false)); }

}  // namespace

RandomRows::RandomRows(std::optional<RandomKey> key) : before_(innermost) { innermost = key; }

RandomRows::~RandomRows() { innermost = before_; }

std::optional<RandomKey> RandomRows::current() { return innermost; }

at::Tensor dropout_factors(const at::Tensor& like, double rate, std::uint64_t layer, const RandomKey& key) {
  if (like.numel() == 0) return no_factors(like);
  return factors_of_part(like, 1, {}, rate, layer, key);
}

at::Tensor dropout_factors(const at::Tensor& like, const GroupsPart& part, double rate, std::uint64_t layer,
                           const RandomKey& key) {
  if (like.numel() == 0) return no_factors(like);
  return factors_of_part(like, like.size(1), part, rate, layer, key);
}

}  // namespace phalanx
