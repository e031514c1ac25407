// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace phalanx::vector {

/// Writes the factors for dropout of elements first ... first + count - 1 to factors[0, count). An element gets 0 if
/// its random number is below `dropped_below`, a number of at most 2^32, else `kept`. The random numbers have 32 bits:
/// the numbers of elements 2 j and 2 j + 1 are the lower and the upper half of number j of the stream, as SplitMix64
/// makes it (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014): the finalizer of stream + (j +
/// 1) * 0x9e3779b97f4a7c15. All instruction sets give the same result. Thread-safe.
void dropout_factors(float* factors, std::int64_t first, std::int64_t count, std::uint64_t stream,
                     std::uint64_t dropped_below, float kept);

}  // namespace phalanx::vector
