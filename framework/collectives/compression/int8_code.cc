// 8-bit quantisation by blocks (as in Dettmers et al.: 8-bit Optimizers via Block-wise Quantization, 2022, with even
// steps).
#include "framework/collectives/compression/int8_code.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "framework/collectives/compression/magnitude.h"

namespace phalanx {
namespace {

constexpr float kSteps = 127;
constexpr float kRounder = 0x1.8p23F;  // floats of this size are 1 apart: adding it rounds to the nearest integer

class Int8Code final : public BlockCode {
 public:
  using BlockCode::BlockCode;

 private:
  std::int64_t block_bytes(std::int64_t elements) const override {
    return static_cast<std::int64_t>(sizeof(float)) + elements;
  }

  void encode_block(std::span<float> values, std::uint8_t* code) const override {
    const float largest = largest_magnitude(values);
    const bool finite = std::isfinite(largest);
    const float scale = finite ? largest / kSteps : std::numeric_limits<float>::quiet_NaN();
    std::memcpy(code, &scale, sizeof scale);
    if (!finite) std::ranges::fill(values, 0.0F);
    // Of a block of zeros, or of numbers too small for a scale, all stays behind.
    const float inverse = kSteps / largest;
    quantise(values, finite ? scale : 0, std::isfinite(inverse) ? inverse : 0, code + sizeof scale);
  }

  static void quantise(std::span<float> values, float scale, float inverse, std::uint8_t* steps) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const float rounded = values[i] * inverse + kRounder - kRounder;
      steps[i] = static_cast<std::uint8_t>(static_cast<std::int32_t>(rounded));
      values[i] -= rounded * scale;
    }
  }

  void add_block(const std::uint8_t* code, float factor, std::span<float> values) const override {
    float scale = 0;
    std::memcpy(&scale, code, sizeof scale);
    const std::uint8_t* steps = code + sizeof scale;
    const float step = scale * factor;
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] += static_cast<float>(static_cast<std::int8_t>(steps[i])) * step;
    }
  }
};

}  // namespace

std::unique_ptr<const BlockCode> make_int8_code(std::int64_t block) { return std::make_unique<Int8Code>(block); }

}  // namespace phalanx
