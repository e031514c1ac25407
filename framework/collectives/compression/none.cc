// SPDX-License-Identifier: Apache-2.0
// No compression, as a baseline: the mean of float32 by the group's own all-reduce, exact up to rounding. Wire: 2 (P -
// 1) / P 4 n bytes per rank.
#include "framework/base/config/no_fields.h"
#include "framework/collectives/compression/compressor.h"

namespace phalanx {
namespace {

class None final : public Compressor {
 public:
  using Compressor::Compressor;

 private:
  void exchange(Wire& wire, at::Tensor tensor) override { wire.all_reduce(tensor, Reduction::kMean); }
};

const bool none_registered = Compressors::global().add<NoFields>(
    "none", "no compression",
    [](const NoFields&, const BucketLayout& layout) { return std::make_unique<None>(layout); });

}  // namespace
}  // namespace phalanx
