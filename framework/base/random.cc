// SPDX-License-Identifier: Apache-2.0
#include "framework/base/random.h"

namespace phalanx {
namespace {

constexpr std::uint64_t kGoldenGamma = 0x9e3779b97f4a7c15;  // 2^64 divided by the golden ratio

std::uint64_t finalize(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

}  // namespace

// The seed is scattered before the stream is added. With a plain sum, (seed, stream) and (seed + 1, stream - 1) would
// give the same result.
std::uint64_t mix(std::uint64_t seed, std::uint64_t stream) {
  return finalize(finalize(seed + kGoldenGamma) + (stream + 1) * kGoldenGamma);
}

}  // namespace phalanx
