// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/operations/reduction.h"

namespace phalanx {
namespace {

bool is_whole(c10::ScalarType dtype) { return c10::isIntegralType(dtype, /*includeBool=*/true); }

}  // namespace

std::string_view to_string(Reduction::Kind kind) {
  switch (kind) {
    case Reduction::kSum:
      return "sum";
    case Reduction::kMean:
      return "mean";
    case Reduction::kProduct:
      return "product";
    case Reduction::kMin:
      return "min";
    case Reduction::kMax:
      return "max";
    case Reduction::kBitAnd:
      return "bit_and";
    case Reduction::kBitOr:
      return "bit_or";
    case Reduction::kBitXor:
      return "bit_xor";
    case Reduction::Kind::kCustom:
      return "custom";
  }
  return "unknown";
}

std::string Reduction::name() const { return custom_ ? custom_->name : std::string(to_string(kind_)); }

bool Reduction::takes(c10::ScalarType dtype) const {
  switch (kind_) {
    case kBitAnd:
    case kBitOr:
    case kBitXor:
      return is_whole(dtype);
    case kMean:
      return dtype != c10::kBool;
    case Kind::kCustom:
      return dtype == custom_->dtype;
    default:
      return true;
  }
}

}  // namespace phalanx
