#pragma once

#include <string_view>

namespace phalanx {

/// How an all-reduce combines the ranks' elements. Every backend combines in an order that does not depend on which
/// rank asks, so all ranks get bitwise the same result.
enum class Reduction {
  kSum,
  kMean,  // the sum divided by the number of ranks; int64: rounded toward zero
  kMin,   // which of a NaN and a number wins is unspecified, but the same on all ranks
  kMax,
};

std::string_view to_string(Reduction op);

}  // namespace phalanx
