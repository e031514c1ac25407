// SPDX-License-Identifier: Apache-2.0
// Sends only signs (Seide et al.: 1-Bit Stochastic Gradient Descent, 2014), with a scale for each block and error
// feedback (Karimireddy et al. 2019), both to the rank that reduces and back from it (Tang et al.: 1-bit Adam, 2021).
// The sign of a result is the sign of the sum of the ranks' scaled signs: a majority vote weighted by magnitude.
//
// A block of B elements is stored as a float32 scale s = mean |x| and a bit for each element: + s, or - s if x < 0. The
// code of n elements has C = ceil(n / 8) + 4 ceil(n / B) bytes if B is a multiple of 8; the bits of each block fill
// whole bytes. Wire: (P - 1) / P 2 C bytes per rank and step, divided between ranks as in BlockExchange.
//
// Like 1-bit Adam, it can begin with `start_after` uncompressed steps: gradients shrink during these steps, and a
// residual would keep the large early ones.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <span>

#include "framework/collectives/compression/block_exchange.h"

namespace phalanx {
namespace {

constexpr std::size_t kBits = 8;

// Keeps as many sums as a byte has bits, so that the loop is not one long chain of additions.
double sum_of_magnitudes(std::span<const float> values) {
  std::array<double, kBits> sums{};
  while (values.size() >= kBits) {
    for (std::size_t i = 0; i < kBits; ++i) sums[i] += std::abs(values[i]);
    values = values.subspan(kBits);
  }
  for (std::size_t i = 0; i < values.size(); ++i) sums[i] += std::abs(values[i]);
  return std::reduce(sums.begin(), sums.end());
}

// The next two functions take up to eight values. If there are exactly eight, the compiler knows the length and
// unrolls.

template <std::size_t Length>
std::uint8_t take_signs(std::span<float, Length> values, float scale) {
  unsigned bits = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const bool negative = values[i] < 0;
    bits |= static_cast<unsigned>(negative) << i;
    values[i] -= negative ? -scale : scale;
  }
  return static_cast<std::uint8_t>(bits);
}

template <std::size_t Length>
void add_signs(unsigned bits, float scale, std::span<float, Length> values) {
  for (std::size_t i = 0; i < values.size(); ++i) values[i] += (bits & (1U << i)) != 0 ? -scale : scale;
}

class OneBitCode final : public BlockCode {
 public:
  using BlockCode::BlockCode;

 private:
  std::int64_t block_bytes(std::int64_t elements) const override {
    return static_cast<std::int64_t>(sizeof(float) + (elements + kBits - 1) / kBits);
  }

  void encode_block(std::span<float> values, std::uint8_t* code) const override {
    const double mean = sum_of_magnitudes(values) / static_cast<double>(values.size());
    const bool finite = std::isfinite(mean);
    const float scale = finite ? static_cast<float>(mean) : std::numeric_limits<float>::quiet_NaN();
    std::memcpy(code, &scale, sizeof scale);
    if (!finite) std::ranges::fill(values, 0.0F);
    std::uint8_t* bits = code + sizeof scale;
    while (values.size() >= kBits) {
      *bits++ = take_signs(values.first<kBits>(), finite ? scale : 0);
      values = values.subspan(kBits);
    }
    if (!values.empty()) *bits = take_signs(values, finite ? scale : 0);
  }

  void add_block(const std::uint8_t* code, float factor, std::span<float> values) const override {
    float scale = 0;
    std::memcpy(&scale, code, sizeof scale);
    const std::uint8_t* bits = code + sizeof scale;
    while (values.size() >= kBits) {
      add_signs(*bits++, scale * factor, values.first<kBits>());
      values = values.subspan(kBits);
    }
    if (!values.empty()) add_signs(*bits, scale * factor, values);
  }
};

struct OneBitConfig {
  std::int64_t block = 256;
  std::int64_t start_after = 0;

  template <class V>
  void visit(V& v) {
    v("block", block, "elements that share a scale", config::between(8, 1 << 20));
    v("start_after", start_after, "initial steps without compression", config::at_least(0));
  }
};

const bool one_bit_registered = Compressors::global().add<OneBitConfig>(
    "one_bit", "signs with a scale per block, with error feedback",
    [](const OneBitConfig& config, const BucketLayout& layout) {
      return std::make_unique<BlockExchange>(layout, std::make_unique<OneBitCode>(config.block), config.start_after);
    });

}  // namespace
}  // namespace phalanx
