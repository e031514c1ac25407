// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace phalanx {

/// Makes the columns of a row-major [rows, columns] matrix orthonormal from left to right, each in the span of itself
/// and those before, and returns those that are none: columns that are 0, not finite, or within rounding (1e-6) in the
/// span of those before, which become 0.
///
/// Modified Gram-Schmidt, twice ("twice is enough": Giraud et al. 2005), in double and in one order of operations:
/// unlike a library's QR, the same bits for the same input on whatever CPU, with whatever alignment and number of
/// threads. 4 rows columns^2 operations.
std::vector<std::int64_t> orthonormalize(float* matrix, std::int64_t rows, std::int64_t columns);

}  // namespace phalanx
