#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

namespace phalanx::testing {

/// `image`: uint8 [channels, height, width] of 1 or 3 channels.
std::string jpeg_bytes(const at::Tensor& image, int quality = 95);

/// A tar archive (ustar) of files by name; names of more than 100 letters as GNU's tar writes them, or as POSIX's pax
/// does.
std::string tar_bytes(const std::vector<std::pair<std::string, std::string>>& files, bool pax = false);

/// An image of smooth colors, uint8 [channels, height, width].
at::Tensor smooth_image(std::int64_t channels, std::int64_t height, std::int64_t width, double phase = 0);

}  // namespace phalanx::testing
