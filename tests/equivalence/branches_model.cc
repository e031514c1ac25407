// SPDX-License-Identifier: Apache-2.0
// The model "branches_under_test". The first pixels of a sample decide which of two layers it goes through. A layer
// that no sample of a batch goes through has no part in that step; a third layer is never used.
#include <ATen/ops/index_select.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/zeros.h>

#include <memory>

#include "framework/base/config/no_fields.h"
#include "models/chain_network.h"
#include "models/linear.h"

namespace phalanx {
namespace {

class Branches final : public RecomputableChain {
 public:
  explicit Branches(const ModelSpec& spec) {
    const auto& image = spec.inputs[0].shape;
    both_ = register_module("both", Linear(image[0] * image[1] * image[2], kWidth));
    left_ = register_module("left", Linear(kWidth, kWidth));
    right_ = register_module("right", Linear(kWidth, kWidth));
    unused_ = register_module("unused", Linear(kWidth, kWidth));
    last_ = register_module("last", Linear(kWidth, spec.outputs[0].shape[0]));
    add_block("both", {"both"}, [this](const at::Tensor& x) { return at::tanh(both_(x.flatten(1))); });
    add_block("branches", {"left", "right", "unused"}, [this](const at::Tensor& x) { return branch(x); });
    add_block("last", {"last"}, [this](const at::Tensor& x) { return last_(x); });
  }

 private:
  static constexpr std::int64_t kWidth = 12;

  at::Tensor branch(const at::Tensor& x) {
    const at::Tensor goes_left = x.detach().select(1, 0) > 0.25;
    at::Tensor y = at::zeros(x.sizes(), x.options());
    for (const bool to_the_left : {true, false}) {
      const at::Tensor rows = (to_the_left ? goes_left : goes_left.logical_not()).nonzero().flatten();
      if (rows.numel() == 0) continue;
      y = y.index_copy(0, rows, (to_the_left ? left_ : right_)(x.index_select(0, rows)));
    }
    return x + at::tanh(y);
  }

  Linear both_{nullptr}, left_{nullptr}, right_{nullptr}, unused_{nullptr}, last_{nullptr};
};

const bool branches_model_registered = Models::global().add<NoFields>(
    "branches_under_test", "each sample chooses a layer",
    [](const NoFields&, const ModelSpec& spec) { return std::make_shared<Branches>(spec); });

}  // namespace
}  // namespace phalanx
