// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace phalanx::vector {

/// Rows of the same length, at the same distance from each other in memory.
struct Rows {
  std::int64_t count = 0;
  std::int64_t length = 0;  // elements
  std::int64_t stride = 0;  // elements from the beginning of a row to the beginning of the next
};

struct Moments {
  double mean = 0;
  double variance = 0;  // divided by the number of elements
};

/// Returns the moments of all elements of `rows`, which has at least one element. Sums are float64 and do not depend on
/// the number of threads. If an element is NaN or infinite, the mean is the sum divided by the count, and the variance
/// is NaN. Thread-safe.
///
/// The sums of the differences from the first element, and of their squares, take one pass over memory (Chan, Golub and
/// LeVeque, Algorithms for Computing the Sample Variance, 1983, section 3: shifted data).
Moments moments(const float* x, const Rows& rows);

/// The linear function (x - center) * factor + offset, which loses no digits of elements near `center`.
struct Line {
  float center = 0;
  float factor = 1;
  float offset = 0;
};

/// Computes y = (x - center) * factor + offset, elementwise. `rows` describes both x and y. Thread-safe.
void transform(const float* x, float* y, const Rows& rows, const Line& line);

}  // namespace phalanx::vector
