// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "datasets/image_dataset.h"

namespace phalanx {

/// Draws `count` digits as a hand would, with `side` x `side` pixels: every one written in one of several ways, turned,
/// slanted, stretched, moved and warped a little, with a pen of its own on noisy paper. Image i shows the digit i % 10
/// and is a pure function of (seed, stream, i, side) on every platform; other streams have unrelated images.
Images draw_digits(std::int64_t count, std::int64_t side, std::int64_t seed, std::uint64_t stream);

/// Of the images that draw_digits() draws, measured on 10^5 of them.
inline constexpr ChannelStatistics kDigitsStatistics{.mean = 0.1284f, .deviation = 0.2544f};

}  // namespace phalanx
