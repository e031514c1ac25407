// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "datasets/image_dataset.h"

namespace phalanx {

/// Draws `count` handwritten digits of `side` x `side` pixels. Each is written in one of several ways, slightly
/// rotated, slanted, stretched, moved and warped, with a random pen on noisy paper. Image i shows the digit i % 10. It
/// is a pure function of (seed, stream, i, side) on every platform; images of different streams are unrelated.
Images draw_digits(std::int64_t count, std::int64_t side, std::int64_t seed, std::uint64_t stream);

/// Statistics of the images of draw_digits(), measured on 10^5 of them.
inline constexpr ChannelStatistics kDigitsStatistics{.mean = 0.1284f, .deviation = 0.2544f};

}  // namespace phalanx
