// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace phalanx {

/// Makes the columns of a row-major [rows, columns] matrix orthonormal from left to right, so that each lies in the
/// span of itself and the columns before it. Returns the dependent columns, which are set to 0: those that are 0, not
/// finite, or within rounding (1e-6) in the span of the columns before them.
///
/// Runs modified Gram-Schmidt twice ("twice is enough": Giraud et al. 2005), in double and in a fixed order of
/// operations. Unlike a library's QR, it gives the same bits for the same input on every CPU, with any alignment and
/// any number of threads. It takes 4 rows columns^2 operations.
std::vector<std::int64_t> orthonormalize(float* matrix, std::int64_t rows, std::int64_t columns);

}  // namespace phalanx
