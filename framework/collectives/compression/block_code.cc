// SPDX-License-Identifier: Apache-2.0
#include "framework/collectives/compression/block_code.h"

#include <algorithm>

namespace phalanx {

void BlockCode::encode(std::span<float> values, std::uint8_t* code) const {
  while (!values.empty()) {
    const auto length = std::min(values.size(), static_cast<std::size_t>(block_));
    encode_block(values.first(length), code);
    code += block_bytes(static_cast<std::int64_t>(length));
    values = values.subspan(length);
  }
}

void BlockCode::add(const std::uint8_t* code, float factor, std::span<float> values) const {
  while (!values.empty()) {
    const auto length = std::min(values.size(), static_cast<std::size_t>(block_));
    add_block(code, factor, values.first(length));
    code += block_bytes(static_cast<std::int64_t>(length));
    values = values.subspan(length);
  }
}

}  // namespace phalanx
