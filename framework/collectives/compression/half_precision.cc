// SPDX-License-Identifier: Apache-2.0
// Halves the bytes: each rank divides by P and rounds to fp16 or bf16, and the group sums the results (mixed-precision
// communication as in Micikevicius et al.: Mixed Precision Training, 2018). Dividing first keeps sums in range.
//
// Each rank rounds once, and so does each of the P - 1 additions. The relative error of a rounding is at most u = 2^-11
// (fp16) or 2^-8 (bf16); below 2^-14, fp16 rounds by up to 2^-25. So the error of an element is at most
//
//   ((1 + u)^P - 1) * (mean over ranks of its magnitude) + P 2^-25 (the last term only for fp16)
//
// fp16 has no numbers above 65504: larger values after the division arrive as infinity. Wire: 2 (P - 1) / P 2 n bytes
// per rank. No state is kept.
#include <ATen/core/Tensor.h>
#include <ATen/ops/div.h>

#include "framework/base/config/no_fields.h"
#include "framework/collectives/compression/compressor.h"

namespace phalanx {
namespace {

class HalfPrecision final : public Compressor {
 public:
  HalfPrecision(const BucketLayout& layout, c10::ScalarType dtype) : Compressor(layout), dtype_(dtype) {}

 private:
  void exchange(Wire& wire, at::Tensor tensor) override {
    const at::Tensor half = tensor.div_(wire.size()).to(dtype_);
    wire.all_reduce(half, Reduction::kSum);
    tensor.copy_(half);
  }

  c10::ScalarType dtype_;
};

bool add(const std::string& name, const std::string& help, c10::ScalarType dtype) {
  return Compressors::global().add<NoFields>(name, help, [dtype](const NoFields&, const BucketLayout& layout) {
    return std::make_unique<HalfPrecision>(layout, dtype);
  });
}

const bool fp16_registered = add("fp16", "half precision: 11 bits, up to 65504", at::kHalf);
const bool bf16_registered = add("bf16", "half precision: 8 bits, the range of float32", at::kBFloat16);

}  // namespace
}  // namespace phalanx
