// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

namespace phalanx {

/// Returns the value below which a fraction `q` (0 to 1) of `values` lies, interpolated between the two nearest values
/// (Hyndman and Fan 1996, definition 7). There must be at least one value.
double quantile(std::span<const double> values, double q);

/// Returns the median of at least one value: the mean of the middle two of an even number of values.
double median(std::span<const double> values);

}  // namespace phalanx
