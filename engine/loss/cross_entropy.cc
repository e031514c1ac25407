// Cross entropy of logits [n, classes] and class numbers [n] int64.
#include <ATen/ops/cross_entropy_loss.h>

#include "engine/loss/loss.h"

namespace phalanx {
namespace {

struct CrossEntropyConfig {
  double label_smoothing = 0;

  template <class V>
  void visit(V& v) {
    v("label_smoothing", label_smoothing, "share of the target spread over all classes", config::between(0, 1));
  }
};

class CrossEntropy final : public Loss {
 public:
  explicit CrossEntropy(const CrossEntropyConfig& config) : config_(config) {}

  at::Tensor mean(const at::Tensor& output, const at::Tensor& target) const override {
    return at::cross_entropy_loss(output, target, {}, at::Reduction::Mean, -100, config_.label_smoothing);
  }

 private:
  CrossEntropyConfig config_;
};

const bool registered = Losses::global().add<CrossEntropyConfig>(
    "cross_entropy", "softmax cross entropy of class numbers",
    [](const CrossEntropyConfig& config) { return std::make_unique<CrossEntropy>(config); });

}  // namespace
}  // namespace phalanx
