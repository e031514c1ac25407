// SPDX-License-Identifier: Apache-2.0
// 4-bit quantization by blocks, for rare exchanges that may be coarse: Streaming DiLoCo (Douillard et al. 2025,
// arXiv:2501.18512, section 2.4) sends outer gradients with 4 bits. The paper uses powers of two (E3M0). Here the steps
// are even with a scale per block (even_steps.h), as in int8_code.h, and reduction and error feedback are the same as
// for int8.
//
// A block of B elements is stored as a float32 scale s = max |x| / 7 and round(x / s), -7 to 7, for each element. Two
// elements share a byte, the first in the lower half. The error is at most s / 2. The code of n elements in whole
// blocks has n / 2 + 4 n / B bytes; the code of a shorter last block of m elements has ceil(m / 2) + 4. Wire: (P - 1) /
// P 2 C bytes per rank and step for a code of C bytes, divided between ranks as in BlockExchange.
#include <memory>
#include <span>

#include "framework/collectives/compression/block_exchange.h"
#include "framework/collectives/compression/even_steps.h"

namespace phalanx {
namespace {

constexpr float kInt4Steps = 7;

class Int4Code final : public BlockCode {
 public:
  using BlockCode::BlockCode;

 private:
  std::int64_t block_bytes(std::int64_t elements) const override {
    return static_cast<std::int64_t>(sizeof(float)) + (elements + 1) / 2;
  }

  void encode_block(std::span<float> values, std::uint8_t* code) const override {
    const EvenSteps steps = write_scale(values, kInt4Steps, code);
    std::uint8_t* pairs = code + sizeof(float);
    for (std::size_t i = 0; i < values.size(); i += 2) {
      const std::uint8_t low = four_bits(steps.take(values[i]));
      const std::uint8_t high = i + 1 < values.size() ? four_bits(steps.take(values[i + 1])) : 0;
      pairs[i / 2] = static_cast<std::uint8_t>(low | (high << 4));
    }
  }

  void add_block(const std::uint8_t* code, float factor, std::span<float> values) const override {
    const std::uint8_t* pairs = code + sizeof(float);
    const float step = read_scale(code) * factor;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const int bits = i % 2 == 0 ? pairs[i / 2] & 0xf : pairs[i / 2] >> 4;
      values[i] += static_cast<float>((bits ^ 8) - 8) * step;
    }
  }

  // Returns the low four bits of the integer, in two's complement.
  static std::uint8_t four_bits(float integer) {
    return static_cast<std::uint8_t>(static_cast<std::int32_t>(integer) & 0xf);
  }
};

struct Int4Config {
  std::int64_t block = 128;

  template <class V>
  void visit(V& v) {
    v("block", block, "elements that share a scale", config::between(8, 1 << 20));
  }
};

const bool int4_registered = Compressors::global().add<Int4Config>(
    "int4", "4 bits per element and a scale per block, with error feedback",
    [](const Int4Config& config, const BucketLayout& layout) {
      return std::make_unique<BlockExchange>(layout, std::make_unique<Int4Code>(config.block));
    });

}  // namespace
}  // namespace phalanx
