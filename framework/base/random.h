// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace phalanx {

/// An independent seed for each `stream` (a rank, an epoch, a sample, a purpose) of one `seed`. Calls nest:
/// mix(mix(seed, epoch), sample). A pure function, the same on every machine and in every release, because the order of
/// samples and with it every result depends on it.
///
/// Two rounds of SplitMix64's finalizer (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
std::uint64_t mix(std::uint64_t seed, std::uint64_t stream);

}  // namespace phalanx
