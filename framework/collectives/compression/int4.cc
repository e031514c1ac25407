// SPDX-License-Identifier: Apache-2.0
// 4-bit quantisation by blocks, for what is exchanged so seldom that it may be coarse: Streaming DiLoCo (Douillard et
// al. 2025, arXiv:2501.18512, section 2.4) sends outer gradients with 4 bits. The paper has powers of two (E3M0) there;
// here are even steps with a scale for each block, as int8_code.h has them (even_steps.h), reduced and fed back in the
// same way.
//
// A block of B elements is a float32 scale s = max |x| / 7, and round(x / s), -7 to 7, for each element, two in a byte,
// the first in the lower half: off by at most s / 2. Code of n elements in whole blocks: n / 2 + 4 n / B bytes; that of
// a last, shorter block of m is ceil(m / 2) + 4. Wire: (P - 1) / P 2 C bytes per rank and step for a code of C bytes,
// as BlockExchange shares it out.
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

  // In two's complement.
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
