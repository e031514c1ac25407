// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <string_view>

namespace phalanx::images {

/// Returns the orientation, 1 to 8, that the first directory of Exif data states (a TIFF file: CIPA DC-008, section
/// 4.6.4, tag 0x0112); 1, which is upright, if it states none or is damaged.
int exif_orientation(std::string_view tiff);

/// Returns an image [height, width, channels] upright that has this orientation: 2 is mirrored, 3 is turned by 180
/// degrees, 4 is 3 mirrored, 6 and 8 are to be turned by 90 degrees clockwise and counterclockwise, and 5 and 7 are
/// these mirrored.
at::Tensor upright(const at::Tensor& image, int orientation);

}  // namespace phalanx::images
