// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace phalanx {

/// Returns an independent seed for each `stream` (a rank, an epoch, a sample, a purpose) of one `seed`. Calls nest:
/// mix(mix(seed, epoch), sample). This is a pure function with the same values on every machine and in every release,
/// because the order of samples, and therefore every result, depends on it.
///
/// Two rounds of SplitMix64's finalizer (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
std::uint64_t mix(std::uint64_t seed, std::uint64_t stream);

}  // namespace phalanx
