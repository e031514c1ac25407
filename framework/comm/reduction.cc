#include "framework/comm/reduction.h"

namespace phalanx {

std::string_view to_string(Reduction op) {
  switch (op) {
    case Reduction::kSum:
      return "sum";
    case Reduction::kMean:
      return "mean";
    case Reduction::kMin:
      return "min";
    case Reduction::kMax:
      return "max";
  }
  return "unknown reduction";
}

}  // namespace phalanx
