// SPDX-License-Identifier: Apache-2.0
#include "framework/testing/reference.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <stdexcept>
#include <string>

namespace phalanx::testing {
namespace {

using Kind = Reduction::Kind;

constexpr std::array kDtypes{at::kByte, at::kChar,     at::kShort, at::kInt,    at::kLong,
                             at::kHalf, at::kBFloat16, at::kFloat, at::kDouble, at::kBool};
constexpr std::int64_t kModulus = 7;
constexpr const char* kCompose = "compose";

std::int64_t compose(std::int64_t f, std::int64_t g) {
  const auto a = f / kModulus * (g / kModulus) % kModulus;
  const auto b = (f % kModulus * (g / kModulus) + g % kModulus) % kModulus;
  return kModulus * a + b;
}

template <class T>
Reduction larger() {
  const auto combine = [](std::span<T> result, std::span<const T> next) {
    for (std::size_t i = 0; i < result.size(); ++i) {
      if (result[i] < next[i]) result[i] = next[i];
    }
  };
  return Reduction::custom<T>("larger", combine, /*commutative=*/true);
}

template <class T>
Reduction composition() {
  return Reduction::custom<T>(kCompose, [](std::span<T> result, std::span<const T> next) {
    for (std::size_t i = 0; i < result.size(); ++i) {
      result[i] = static_cast<T>(compose(static_cast<std::int64_t>(result[i]), static_cast<std::int64_t>(next[i])));
    }
  });
}

template <class T>
void add_custom(std::vector<Reduction>& all, at::ScalarType dtype) {
  if (dtype != c10::CppTypeToScalarType<T>::value) return;
  all.push_back(larger<T>());
  if constexpr (!std::is_same_v<T, bool>) all.push_back(composition<T>());
}

template <class... T>
void add_customs(std::vector<Reduction>& all, at::ScalarType dtype) {
  (add_custom<T>(all, dtype), ...);
}

bool composes(const Reduction& op) { return op.kind() == Kind::kCustom && op.name() == kCompose; }

// Returns one element of a rank's input.
std::int64_t value(int rank, std::int64_t i, at::ScalarType dtype, const Reduction& op) {
  const bool is_signed = dtype != at::kByte && dtype != at::kBool;
  if (dtype == at::kBool) return (i * 7 + rank * 3) % 5 < 2;
  if (composes(op)) return (i * 11 + rank * 17) % (kModulus * kModulus);
  if (op.kind() != Kind::kProduct) return (i * 7 + rank * 13) % 31 - (is_signed ? 15 : 0);
  if ((i + rank) % 3 == 0) return 2;  // for at most 3 of 8 ranks
  return is_signed && (i + rank) % 5 == 1 ? -1 : 1;
}

std::int64_t combined(const Reduction& op, std::int64_t a, std::int64_t b) {
  switch (op.kind()) {
    case Kind::kSum:
    case Kind::kMean:
      return a + b;
    case Kind::kProduct:
      return a * b;
    case Kind::kMin:
      return std::min(a, b);
    case Kind::kMax:
      return std::max(a, b);
    case Kind::kBitAnd:
      return a & b;
    case Kind::kBitOr:
      return a | b;
    case Kind::kBitXor:
      return a ^ b;
    case Kind::kCustom:
      return composes(op) ? compose(a, b) : std::max(a, b);
  }
  throw std::logic_error("no reference for " + op.name());
}

// Converts the result to the dtype. A mean is divided as that dtype divides.
at::Tensor finished(const at::Tensor& whole, std::int64_t ranks, at::ScalarType dtype, const Reduction& op) {
  if (op.kind() != Kind::kMean) return whole.to(dtype);
  if (at::isIntegralType(dtype, /*includeBool=*/true)) return whole.div(ranks, "trunc").to(dtype);
  return whole.to(dtype == at::kDouble ? at::kDouble : at::kFloat).div(ranks).to(dtype);
}

}  // namespace

std::span<const at::ScalarType> all_dtypes() { return kDtypes; }

std::vector<Reduction> reductions_of(at::ScalarType dtype) {
  std::vector<Reduction> all;
  for (int kind = 0; kind < static_cast<int>(Kind::kCustom); ++kind) {
    const Reduction op(static_cast<Kind>(kind));
    if (op.takes(dtype)) all.push_back(op);
  }
  add_customs<std::uint8_t, std::int8_t, std::int16_t, std::int32_t, std::int64_t, c10::Half, c10::BFloat16, float,
              double, bool>(all, dtype);
  return all;
}

at::Tensor input_of(int rank, std::int64_t elements, at::ScalarType dtype, const Reduction& op) {
  at::Tensor whole = at::empty({elements}, at::kLong);
  auto* values = whole.data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < elements; ++i) values[i] = value(rank, i, dtype, op);
  return whole.to(dtype);
}

at::Tensor reduced(std::span<const int> ranks, std::int64_t elements, at::ScalarType dtype, const Reduction& op) {
  at::Tensor whole = at::empty({elements}, at::kLong);
  auto* values = whole.data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < elements; ++i) values[i] = value(ranks.front(), i, dtype, op);
  for (const int rank : ranks.subspan(1)) {
    for (std::int64_t i = 0; i < elements; ++i) values[i] = combined(op, values[i], value(rank, i, dtype, op));
  }
  return finished(whole, static_cast<std::int64_t>(ranks.size()), dtype, op);
}

at::Tensor reduced(int ranks, std::int64_t elements, at::ScalarType dtype, const Reduction& op) {
  std::vector<int> all(ranks);
  std::iota(all.begin(), all.end(), 0);
  return reduced(all, elements, dtype, op);
}

}  // namespace phalanx::testing
