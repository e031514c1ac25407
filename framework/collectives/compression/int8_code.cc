// SPDX-License-Identifier: Apache-2.0
// 8-bit quantization by blocks (as in Dettmers et al.: 8-bit Optimizers via Block-wise Quantization, 2022, but with
// even steps).
#include "framework/collectives/compression/int8_code.h"

#include "framework/collectives/compression/even_steps.h"

namespace phalanx {
namespace {

constexpr float kInt8Steps = 127;

class Int8Code final : public BlockCode {
 public:
  using BlockCode::BlockCode;

 private:
  std::int64_t block_bytes(std::int64_t elements) const override {
    return static_cast<std::int64_t>(sizeof(float)) + elements;
  }

  void encode_block(std::span<float> values, std::uint8_t* code) const override {
    const EvenSteps steps = write_scale(values, kInt8Steps, code);
    code += sizeof(float);
    for (std::size_t i = 0; i < values.size(); ++i) {
      code[i] = static_cast<std::uint8_t>(static_cast<std::int32_t>(steps.take(values[i])));
    }
  }

  void add_block(const std::uint8_t* code, float factor, std::span<float> values) const override {
    const std::uint8_t* steps = code + sizeof(float);
    const float step = read_scale(code) * factor;
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] += static_cast<float>(static_cast<std::int8_t>(steps[i])) * step;
    }
  }
};

}  // namespace

std::unique_ptr<const BlockCode> make_int8_code(std::int64_t block) { return std::make_unique<Int8Code>(block); }

}  // namespace phalanx
