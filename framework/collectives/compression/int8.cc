// SPDX-License-Identifier: Apache-2.0
// 8-bit quantization by blocks (int8_code.h). Blocks are reduced in float32 between two exchanges (as in Wang et al.:
// ZeRO++, 2023), with error feedback.
//
// The code of n elements has C = n + 4 ceil(n / B) bytes for blocks of B elements. The error of an element of the mean
// is at most half the mean of the ranks' scales plus half the scale of the mean's block. Wire: (P - 1) / P 2 C bytes
// per rank and step, divided between ranks as in BlockExchange.
#include "framework/collectives/compression/block_exchange.h"
#include "framework/collectives/compression/int8_code.h"

namespace phalanx {
namespace {

struct Int8Config {
  std::int64_t block = 256;

  template <class V>
  void visit(V& v) {
    v("block", block, "elements that share a scale", config::between(8, 1 << 20));
  }
};

const bool int8_registered = Compressors::global().add<Int8Config>(
    "int8", "8 bits per element and a scale per block, with error feedback",
    [](const Int8Config& config, const BucketLayout& layout) {
      return std::make_unique<BlockExchange>(layout, make_int8_code(config.block));
    });

}  // namespace
}  // namespace phalanx
