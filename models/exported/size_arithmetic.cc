#include "models/exported/size_arithmetic.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <stdexcept>

namespace phalanx::exported {
namespace {

using c10::IValue;

std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  if (b == 0) throw std::domain_error("divides a size by 0");
  if (b == -1) return a == std::numeric_limits<std::int64_t>::min() ? a : -a;  // which the processor cannot divide
  return a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}

#define PHALANX_BINARY(expression)                               \
  [](const std::vector<IValue>& v) -> IValue {                   \
    const std::int64_t a = v.at(0).toInt(), b = v.at(1).toInt(); \
    return expression;                                           \
  }
const std::map<std::string, Arithmetic>& arithmetic() {
  static const std::map<std::string, Arithmetic> kAll{
      {"_operator.add", PHALANX_BINARY(a + b)},
      {"_operator.sub", PHALANX_BINARY(a - b)},
      {"_operator.mul", PHALANX_BINARY(a * b)},
      {"_operator.floordiv", PHALANX_BINARY(floor_divide(a, b))},
      {"_operator.mod", PHALANX_BINARY(a - b * floor_divide(a, b))},
      {"_operator.eq", PHALANX_BINARY(a == b)},
      {"_operator.ne", PHALANX_BINARY(a != b)},
      {"_operator.lt", PHALANX_BINARY(a < b)},
      {"_operator.le", PHALANX_BINARY(a <= b)},
      {"_operator.gt", PHALANX_BINARY(a > b)},
      {"_operator.ge", PHALANX_BINARY(a >= b)},
      {"torch.sym_max", PHALANX_BINARY(std::max(a, b))},
      {"torch.sym_min", PHALANX_BINARY(std::min(a, b))},
      {"_operator.neg", [](const std::vector<IValue>& v) -> IValue { return -v.at(0).toInt(); }},
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
