// SPDX-License-Identifier: Apache-2.0
#include "models/exported/size_arithmetic.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <stdexcept>

namespace phalanx::exported {
namespace {

using c10::IValue;

// Called on overflow, since a program from a file may compute with any numbers.
[[noreturn]] void refuse_overflow() { throw std::overflow_error("computes a size that does not fit in 64 bits"); }

std::int64_t add(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) refuse_overflow();
  return sum;
}

std::int64_t subtract(std::int64_t a, std::int64_t b) {
  std::int64_t difference = 0;
  if (__builtin_sub_overflow(a, b, &difference)) refuse_overflow();
  return difference;
}

std::int64_t multiply(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) refuse_overflow();
  return product;
}

// Computes the remainder as Python does: it has the sign of the divisor.
std::int64_t modulo(std::int64_t a, std::int64_t b) {
  if (b == 0) throw std::domain_error("divides a size by 0");
  if (b == -1) return 0;  // INT64_MIN / -1 would trap
  const auto rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  if (b == 0) throw std::domain_error("divides a size by 0");
  if (b == -1) return subtract(0, a);
  return a / b - (modulo(a, b) != a % b ? 1 : 0);  // rounded down
}

#define PHALANX_BINARY(expression)                               \
  [](const std::vector<IValue>& v) -> IValue {                   \
    const std::int64_t a = v.at(0).toInt(), b = v.at(1).toInt(); \
    return expression;                                           \
  }
const std::map<std::string, Arithmetic>& arithmetic() {
  static const std::map<std::string, Arithmetic> kAll{
      {"_operator.add", PHALANX_BINARY(add(a, b))},
      {"_operator.sub", PHALANX_BINARY(subtract(a, b))},
      {"_operator.mul", PHALANX_BINARY(multiply(a, b))},
      {"_operator.floordiv", PHALANX_BINARY(floor_divide(a, b))},
      {"_operator.mod", PHALANX_BINARY(modulo(a, b))},
      {"_operator.eq", PHALANX_BINARY(a == b)},
      {"_operator.ne", PHALANX_BINARY(a != b)},
      {"_operator.lt", PHALANX_BINARY(a < b)},
      {"_operator.le", PHALANX_BINARY(a <= b)},
      {"_operator.gt", PHALANX_BINARY(a > b)},
      {"_operator.ge", PHALANX_BINARY(a >= b)},
      {"torch.sym_max", PHALANX_BINARY(std::max(a, b))},
      {"torch.sym_min", PHALANX_BINARY(std::min(a, b))},
      {"_operator.neg", [](const std::vector<IValue>& v) -> IValue { return subtract(0, v.at(0).toInt()); }},
      {"torch.sym_not", [](const std::vector<IValue>& v) -> IValue { return !v.at(0).toBool(); }},
  };
  return kAll;
}
#undef PHALANX_BINARY

}  // namespace

Arithmetic arithmetic_of(const std::string& target) {
  const auto found = arithmetic().find(target);
  return found == arithmetic().end() ? nullptr : found->second;
}

}  // namespace phalanx::exported
