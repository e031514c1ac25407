// SPDX-License-Identifier: Apache-2.0
// Cross entropy of logits [n, ..., classes] and class indices [n, ...] int64: the mean over all targets that are not
// kIgnored. Targets may also be probabilities of all classes, [n, ..., classes] with the sum 1, as in mixed samples;
// label smoothing applies to these too.
//
// On devices, many logits are processed in chunks, so that they never exist in float32 all at once.
#include <ATen/ops/cross_entropy_loss.h>

#include "engine/loss/loss.h"
#include "engine/loss/require.h"
#include "framework/base/batch.h"
#include "framework/parallel/chunked_cross_entropy.h"
#include "framework/parallel/sharded_logits.h"

namespace phalanx {
namespace {

struct CrossEntropyConfig {
  double label_smoothing = 0;

  template <class V>
  void visit(V& v) {
    v("label_smoothing", label_smoothing, "fraction of the target spread over all classes", config::between(0, 1));
  }
};

at::Tensor in_32_bits(const at::Tensor& logits) {
  return c10::elementSize(logits.scalar_type()) < 4 ? logits.to(at::kFloat) : logits;
}

class CrossEntropy final : public Loss {
 public:
  explicit CrossEntropy(const CrossEntropyConfig& config) : config_(config) {}

  at::Tensor mean(const at::Tensor& output, const at::Tensor& target) const override {
    if (c10::isFloatingType(target.scalar_type()) && output.dim() >= 2 && target.sizes() == output.sizes()) {
      const at::Tensor logits = in_32_bits(output.flatten(0, -2));
      return at::cross_entropy_loss(logits, target.to(logits.scalar_type()).flatten(0, -2), {}, at::Reduction::Mean,
                                    kIgnored, config_.label_smoothing);
    }
    require_of_loss(output.dim() >= 2 && target.sizes() == output.sizes().slice(0, output.dim() - 1),
                    "cross_entropy takes logits [n, ..., classes] and class indices [n, ...], but got ", output.sizes(),
                    " and ", target.sizes());
    const at::Tensor logits = output.flatten(0, -2), classes = target.flatten();
    if (!logits.is_cpu() && logits.numel() > kCrossEntropyChunk) {
      return chunked_cross_entropy(logits, classes, kIgnored, config_.label_smoothing);
    }
    return at::cross_entropy_loss(in_32_bits(logits), classes, {}, at::Reduction::Mean, kIgnored,
                                  config_.label_smoothing);
  }

  bool takes_16_bits() const override { return true; }

  at::Tensor mean_of_parts(const at::Tensor& part, const VocabularyShard& parts,
                           const at::Tensor& target) const override {
    if (c10::isFloatingType(target.scalar_type())) return mean(gather_logits(part, parts), target);
    return sharded_cross_entropy(part, parts, target, kIgnored, config_.label_smoothing);
  }

 private:
  CrossEntropyConfig config_;
};

const bool cross_entropy_registered = Losses::global().add<CrossEntropyConfig>(
    "cross_entropy", "softmax cross entropy with class indices",
    [](const CrossEntropyConfig& config) { return std::make_shared<CrossEntropy>(config); });

}  // namespace
}  // namespace phalanx
