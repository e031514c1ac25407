// SPDX-License-Identifier: Apache-2.0
#include "framework/collectives/testing/expected.h"

#include <ATen/ops/div.h>
#include <ATen/ops/empty.h>

#include <algorithm>

namespace phalanx::testing {
namespace {

// Composes two functions x -> factor x + shift modulo 2^31, which is associative and not commutative.
std::int64_t compose(std::int64_t first, std::int64_t second) {
  constexpr std::int64_t kModulus = std::int64_t{1} << 31;
  const std::int64_t factor = (first / kModulus) * (second / kModulus) % kModulus;
  const std::int64_t shift = ((first % kModulus) * (second / kModulus) + second % kModulus) % kModulus;
  return factor * kModulus + shift;
}

Reduction composition() {
  return Reduction::custom<std::int64_t>("compose", [](auto result, auto next) {
    for (std::size_t i = 0; i < result.size(); ++i) result[i] = compose(result[i], next[i]);
  });
}

// Computes in unsigned arithmetic, because products of int64 wrap.
std::int64_t fold(Reduction::Kind kind, std::int64_t a, std::int64_t b) {
  const auto ua = static_cast<std::uint64_t>(a), ub = static_cast<std::uint64_t>(b);
  switch (kind) {
    case Reduction::kSum:
    case Reduction::kMean:
      return static_cast<std::int64_t>(ua + ub);
    case Reduction::kProduct:
      return static_cast<std::int64_t>(ua * ub);
    case Reduction::kMin:
      return std::min(a, b);
    case Reduction::kMax:
      return std::max(a, b);
    case Reduction::kBitAnd:
      return a & b;
    case Reduction::kBitOr:
      return a | b;
    case Reduction::kBitXor:
      return a ^ b;
    case Reduction::Kind::kCustom:
      return compose(a, b);
  }
  return 0;
}

std::int64_t element(int rank, std::int64_t index, c10::ScalarType dtype) {
  const std::int64_t varied = index * 7 + rank * 13 + index * rank % 11;
  switch (dtype) {
    case c10::kLong:
      return varied * 1'000'003 + 1;
    case c10::kBool:
      return varied % 3 == 0;
    case c10::kByte:
      return varied % 3;
    default:
      return varied % 5 - 2;
  }
}

at::Tensor tensor_of(const std::vector<std::int64_t>& values, c10::ScalarType dtype) {
  at::Tensor tensor = at::empty({std::ssize(values)}, c10::kLong);
  std::copy(values.begin(), values.end(), tensor.mutable_data_ptr<std::int64_t>());
  return tensor.to(dtype);
}

}  // namespace

const std::vector<Reducing>& reducings() {
  static const std::vector<Reducing> all{
      {Reduction::kSum, c10::kLong},     {Reduction::kMean, c10::kLong},    {Reduction::kProduct, c10::kLong},
      {Reduction::kMin, c10::kLong},     {Reduction::kMax, c10::kLong},     {Reduction::kBitAnd, c10::kLong},
      {Reduction::kBitOr, c10::kLong},   {Reduction::kBitXor, c10::kLong},  {Reduction::kSum, c10::kFloat},
      {Reduction::kMean, c10::kFloat},   {Reduction::kSum, c10::kBFloat16}, {Reduction::kMax, c10::kHalf},
      {Reduction::kMin, c10::kDouble},   {Reduction::kSum, c10::kByte},     {Reduction::kSum, c10::kChar},
      {Reduction::kProduct, c10::kBool}, {Reduction::kBitXor, c10::kShort}, {Reduction::kSum, c10::kInt},
      {composition(), c10::kLong}};
  return all;
}

at::Tensor contribution(int rank, std::int64_t elements, c10::ScalarType dtype) {
  std::vector<std::int64_t> values;
  for (std::int64_t i = 0; i < elements; ++i) values.push_back(element(rank, i, dtype));
  return tensor_of(values, dtype);
}

at::Tensor reduced(const Reducing& reducing, int ranks, std::int64_t elements) {
  const auto& [op, dtype] = reducing;
  std::vector<std::int64_t> values;
  for (std::int64_t i = 0; i < elements; ++i) {
    std::int64_t value = element(0, i, dtype);
    for (int rank = 1; rank < ranks; ++rank) value = fold(op.kind(), value, element(rank, i, dtype));
    values.push_back(value);
  }
  if (op.kind() != Reduction::kMean) return tensor_of(values, dtype);
  if (c10::isFloatingType(dtype)) return tensor_of(values, dtype).div(ranks);
  for (auto& value : values) value /= ranks;
  return tensor_of(values, dtype);
}

std::vector<std::int64_t> uneven_counts(int ranks, int seed) {
  std::vector<std::int64_t> counts;
  for (int rank = 0; rank < ranks; ++rank) counts.push_back((rank * 5 + seed * 3) % 4);
  counts[seed % ranks] += 100;
  return counts;
}

Guarded::Guarded(std::int64_t elements, c10::ScalarType dtype)
    : whole_(at::empty({elements + 2}, dtype).fill_(1)), tensor_(whole_.narrow(0, 1, elements)) {}

Guarded::Guarded(const at::Tensor& values) : Guarded(values.numel(), values.scalar_type()) { tensor_.copy_(values); }

bool Guarded::intact() const { return whole_[0].item<int>() == 1 && whole_[-1].item<int>() == 1; }

}  // namespace phalanx::testing
