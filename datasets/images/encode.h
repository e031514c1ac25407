// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace phalanx {

/// Returns a PNG of `image`, uint8 [channels, height, width] with 1, 3 or 4 channels, the fourth of which is alpha.
std::string encode_png(const at::Tensor& image);

}  // namespace phalanx
