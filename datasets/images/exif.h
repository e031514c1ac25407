// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <string_view>

namespace phalanx::images {

/// Returns the orientation, 1 to 8, in the first directory of Exif data (a TIFF file: CIPA DC-008, section 4.6.4, tag
/// 0x0112). Returns 1 (upright) if the orientation is missing or the data is damaged.
int exif_orientation(std::string_view tiff);

/// Returns the upright version of an image [height, width, channels] with this orientation. 2 is mirrored, 3 is rotated
/// by 180 degrees, 4 is 3 mirrored; 6 and 8 must be rotated by 90 degrees clockwise and counterclockwise, and 5 and 7
/// are 6 and 8 mirrored.
at::Tensor upright(const at::Tensor& image, int orientation);

}  // namespace phalanx::images
