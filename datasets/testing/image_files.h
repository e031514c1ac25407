// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace phalanx::testing {

/// Decodes hexadecimal digits, two for each byte.
std::string from_hex(const std::string& digits);

/// Returns a JPEG of `image`, uint8 [channels, height, width] of 1 or 3 channels.
std::string jpeg_bytes(const at::Tensor& image, int quality = 95);

/// Returns a JPEG of `inks`, uint8 [4, height, width] of cyan, magenta, yellow and black, inverted, as Adobe's programs
/// write it; converted to YCCK if `ycck`.
std::string jpeg_of_inks(const at::Tensor& inks, bool ycck);

/// Returns a JPEG with Exif data that state an orientation.
std::string with_orientation(const std::string& jpeg, int orientation);

/// Returns a PNG of one pixel with 16 bits for each of its channels, 1 or 3, which states a gamma of 1.
std::string png_of_16_bits(const std::vector<std::uint16_t>& pixel);

/// A tar archive (ustar) of files by name; names of more than 100 letters as GNU's tar writes them, or as POSIX's pax
/// does.
std::string tar_bytes(const std::vector<std::pair<std::string, std::string>>& files, bool pax = false);

/// An image of smooth colors, uint8 [channels, height, width].
at::Tensor smooth_image(std::int64_t channels, std::int64_t height, std::int64_t width, double phase = 0);

}  // namespace phalanx::testing
