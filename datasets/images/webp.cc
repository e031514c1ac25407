// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/empty.h>
#include <webp/decode.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "datasets/images/codecs.h"
#include "framework/base/error.h"

namespace phalanx::images {

Decoded decode_webp(std::string_view bytes, const std::string& name) {
  const auto* const data = reinterpret_cast<const std::uint8_t*>(bytes.data());
  WebPBitstreamFeatures features{};
  const auto require = [&](bool succeeded) {
    if (!succeeded) throw DataError(name + ": a damaged WebP");
  };
  require(WebPGetFeatures(data, bytes.size(), &features) == VP8_STATUS_OK);
  if (features.has_animation != 0) throw DataError(name + ": an animated WebP, which is not supported");
  check_pixels(features.height, features.width, name);
  const int channels = features.has_alpha != 0 ? 4 : 3, stride = channels * features.width;
  Decoded decoded{at::empty({features.height, features.width, channels}, at::kByte)};
  auto* const to = decoded.pixels.mutable_data_ptr<std::uint8_t>();
  const auto size = static_cast<std::size_t>(decoded.pixels.numel());
  const auto* const end = channels == 4 ? WebPDecodeRGBAInto(data, bytes.size(), to, size, stride)
                                        : WebPDecodeRGBInto(data, bytes.size(), to, size, stride);
  require(end != nullptr);
  return decoded;
}

}  // namespace phalanx::images
