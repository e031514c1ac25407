#pragma once

#include <cstdint>

namespace phalanx::images {

/// An image with more pixels, decoded or resized, is an error: a file of a hundred bytes may claim any size. As many as
/// Pillow decodes.
inline constexpr std::int64_t kMostPixels = 178'956'970;

}  // namespace phalanx::images
