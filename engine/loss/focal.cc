// SPDX-License-Identifier: Apache-2.0
// Focal loss (Lin et al. 2017, Focal Loss for Dense Object Detection, arXiv:1708.02002, equations 4 and 5): the cross
// entropy of each target times (1 - p)^gamma, where p is the predicted probability of the target. Easy samples count
// less, so that large numbers of them do not outweigh the few others.
//
//   class indices: logits [n, ..., classes], target [n, ...] int64; the mean over all targets that are not kIgnored
//   independent values from 0 to 1: logits and target of the same shape, as in torchvision's sigmoid_focal_loss
#include <ATen/TensorOperators.h>
#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/loss/loss.h"
#include "engine/loss/require.h"
#include "framework/base/batch.h"
#include "framework/base/config/visitor.h"

namespace phalanx {
namespace {

struct FocalConfig {
  double gamma = 2;
  std::vector<double> alpha;

  template <class V>
  void visit(V& v) {
    v("gamma", gamma, "how much less well classified samples count; 0: not at all", config::at_least(0));
    v("alpha", alpha,
      "weights: for class numbers, one each; for values from 0 to 1, one number a for 1, and 1 - a for 0; []: all "
      "equal",
      config::between(0, 1));
  }
};

class Focal final : public Loss {
 public:
  explicit Focal(const FocalConfig& config) : gamma_(config.gamma), alpha_(config.alpha) {}

  at::Tensor mean(const at::Tensor& output, const at::Tensor& target) const override {
    if (output.sizes() == target.sizes()) return mean_of_values(output, target.to(output.scalar_type()));
    require_of_loss(
        target.scalar_type() == at::kLong && output.dim() >= 2 &&
            target.sizes() == output.sizes().slice(0, static_cast<std::size_t>(output.dim() - 1)),
        "focal takes logits [n, ..., classes] and class indices [n, ...], or logits and values from 0 to 1 of "
        "the same shape, but got ",
        output.sizes(), " and ", target.sizes());
    return mean_of_classes(output.flatten(0, -2), target.flatten());
  }

 private:
  // A base of 0 would have no derivative if gamma is below 1.
  at::Tensor modulated(const at::Tensor& entropy, const at::Tensor& missed) const {
    return gamma_ == 0 ? entropy : entropy * missed.clamp_min(1e-12).pow(gamma_);
  }

  at::Tensor mean_of_values(const at::Tensor& logits, const at::Tensor& target) const {
    require_of_loss(alpha_.size() <= 1, "alpha has ", alpha_.size(),
                    " numbers; where targets are values from 0 to 1, focal takes one, for the target 1, or none");
    const at::Tensor entropy = at::binary_cross_entropy_with_logits(logits, target, {}, {}, at::Reduction::None);
    const at::Tensor p = logits.sigmoid();
    const at::Tensor loss = modulated(entropy, 1 - (p * target + (1 - p) * (1 - target)));
    if (alpha_.empty()) return loss.mean();
    return ((alpha_[0] * target + (1 - alpha_[0]) * (1 - target)) * loss).mean();
  }

  at::Tensor mean_of_classes(const at::Tensor& logits, const at::Tensor& target) const {
    const auto classes = logits.size(1);
    require_of_loss(alpha_.empty() || static_cast<std::int64_t>(alpha_.size()) == classes, "alpha has ", alpha_.size(),
                    " numbers, but there are ", classes, " classes; give one for each, or none");
    const at::Tensor counted = target.ne(kIgnored);
    const at::Tensor wanted = at::where(counted, target, 0);
    const at::Tensor log_p = at::log_softmax(logits, 1).gather(1, wanted.unsqueeze(1)).squeeze(1);
    at::Tensor loss = modulated(-log_p, -log_p.expm1());
    if (!alpha_.empty()) loss = loss * at::tensor(alpha_, logits.options()).index_select(0, wanted);
    return at::where(counted, loss, 0).sum() / counted.sum();
  }

  double gamma_;
  std::vector<double> alpha_;
};

const bool focal_registered =
    Losses::global().add<FocalConfig>("focal", "cross entropy in which well classified samples count less",
                                      [](const FocalConfig& config) { return std::make_shared<Focal>(config); });

}  // namespace
}  // namespace phalanx
