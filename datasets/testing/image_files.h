// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace phalanx::testing {

/// Decodes hexadecimal digits, two per byte.
std::string from_hex(const std::string& digits);

/// Returns a JPEG of `image`, uint8 [channels, height, width] with 1 or 3 channels.
std::string jpeg_bytes(const at::Tensor& image, int quality = 95);

/// Returns a JPEG of `inks`, uint8 [4, height, width] of cyan, magenta, yellow and black, inverted as Adobe's programs
/// write them, and converted to YCCK if `ycck`.
std::string jpeg_of_inks(const at::Tensor& inks, bool ycck);

/// Returns the JPEG with Exif data that has this orientation.
std::string with_orientation(const std::string& jpeg, int orientation);

/// Returns a PNG of one pixel with 1 or 3 channels of 16 bits, which states a gamma of 1.
std::string png_of_16_bits(const std::vector<std::uint16_t>& pixel);

/// Returns a tar archive (ustar) of files, given as names and contents. Names of more than 100 bytes are stored as GNU
/// tar does, or as POSIX pax does if `pax`.
std::string tar_bytes(const std::vector<std::pair<std::string, std::string>>& files, bool pax = false);

/// Returns an image of smooth colours, uint8 [channels, height, width].
at::Tensor smooth_image(std::int64_t channels, std::int64_t height, std::int64_t width, double phase = 0);

}  // namespace phalanx::testing
