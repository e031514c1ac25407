// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace phalanx::images {

/// The most pixels that an image may have, decoded or resized: a file of a hundred bytes can claim any size. The limit
/// is Pillow's.
inline constexpr std::int64_t kMostPixels = 178'956'970;

}  // namespace phalanx::images
