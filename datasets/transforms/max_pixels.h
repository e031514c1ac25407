// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace phalanx::images {

/// The largest number of pixels of an image, decoded or resized. A limit is needed because a file of a hundred bytes
/// can claim any size. It is the same as Pillow's.
inline constexpr std::int64_t kMaxPixels = 178'956'970;

}  // namespace phalanx::images
