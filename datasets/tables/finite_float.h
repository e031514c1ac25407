// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <string>

#include "framework/base/error.h"
#include "framework/base/text.h"

namespace phalanx {

/// Returns true if the number is finite as float32, the type of samples.
inline bool is_finite_float(double number) { return std::isfinite(static_cast<float>(number)); }

/// Returns the number as float32, the type of samples. Throws DataError, which begins with `where()`, for NaN,
/// infinities and numbers that are too large for float32. All samples from tables and arrays follow this rule.
template <class Where>
float finite_float(double number, const Where& where) {
  if (is_finite_float(number)) return static_cast<float>(number);
  throw DataError(where() + ": " + format_text("%g", number) +
                  " is not a finite number in float32, the type of samples");
}

}  // namespace phalanx
