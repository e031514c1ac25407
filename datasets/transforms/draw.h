// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "datasets/random_stream.h"

namespace phalanx {

/// Returns a number that is uniform in [low, high), with 53 random bits.
inline double draw(RandomStream& random, double low, double high) {
  return low + (high - low) * (static_cast<double>(random.next() >> 11) * 0x1p-53);
}

}  // namespace phalanx
