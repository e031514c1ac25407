// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

namespace phalanx {

/// An infinite sequence of random numbers that depends only on its seed. It is equal on every platform, compiler and
/// library version, unlike the distributions of <random> and std::shuffle. For one stream per epoch, sample or purpose,
/// seed it with mix() of framework/base/random.h.
///
/// The generator is SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014). It is not
/// cryptographically secure.
class RandomStream {
 public:
  explicit RandomStream(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  /// Returns a number that is uniform in [0, bound), without bias; bound > 0.
  std::uint64_t below(std::uint64_t bound) {
    // Takes the high half of a 128-bit product (Lemire 2019) and draws again in the few cases that would bias the
    // result.
    auto product = static_cast<unsigned __int128>(next()) * bound;
    if (static_cast<std::uint64_t>(product) < bound) {
      const std::uint64_t surplus = (0 - bound) % bound;
      while (static_cast<std::uint64_t>(product) < surplus) product = static_cast<unsigned __int128>(next()) * bound;
    }
    return static_cast<std::uint64_t>(product >> 64);
  }

  /// Returns a number that is uniform in (0, 1], so that its logarithm is finite.
  double uniform() { return std::ldexp(static_cast<double>((next() >> 11) + 1), -53); }

  /// Returns a number that is uniform in [0, 1).
  double below_one() { return std::ldexp(static_cast<double>(next() >> 11), -53); }

  /// Returns a normally distributed number with mean 0 and variance 1, from two uniform ones (Box and Muller 1958).
  double normal() {
    const double radius = std::sqrt(-2 * std::log(uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }

  /// Returns a number that is uniform in [low, high).
  float between(float low, float high) { return low + (high - low) * (static_cast<float>(next() >> 40) * 0x1p-24f); }

 private:
  std::uint64_t state_;
};

}  // namespace phalanx
