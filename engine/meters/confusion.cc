// SPDX-License-Identifier: Apache-2.0
// The number of samples of class i for which class j is predicted, the one with the highest score (torchnet's
// ConfusionMeter). "confusion[i][j]" is a count or, normalized, the share of class i's samples. Output [n, ..., K],
// target [n, ...] int64.
#include <ATen/core/Tensor.h>
#include <ATen/ops/bincount.h>

#include "engine/meters/class_counts.h"
#include "engine/meters/labels.h"
#include "engine/meters/meter.h"

namespace phalanx {
namespace {

struct ConfusionConfig {
  bool normalized = false;

  template <class V>
  void visit(V& v) {
    v("normalized", normalized, "fractions of each class instead of counts");
  }
};

class Confusion final : public Meter {
 public:
  explicit Confusion(const ConfusionConfig& config) : config_(config) {}

  void add(const Batch& batch, const Step::Result& result) override {
    const auto [scores, target] = classes_of(batch, result);
    const auto classes = scores.size(1);
    const at::Tensor cell = target.mul(classes).add(scores.argmax(-1)).cpu();
    counts_.add(at::bincount(cell, {}, classes * classes).reshape({classes, classes}));
  }

  Metrics take(Communicator& group) override {
    const at::Tensor counts = counts_.take(group);
    const auto* count = counts.data_ptr<std::int64_t>();
    Metrics metrics;
    for (std::int64_t i = 0; i < counts.size(0); ++i) {
      const auto samples = config_.normalized ? counts.select(0, i).sum().item<std::int64_t>() : 1;
      for (std::int64_t j = 0; j < counts.size(1); ++j, ++count) {
        const double value = samples > 0 ? static_cast<double>(*count) / static_cast<double>(samples) : 0;
        metrics.emplace_back("confusion[" + std::to_string(i) + "][" + std::to_string(j) + "]", value);
      }
    }
    return metrics;
  }

  State state() override { return counts_.state(); }
  void merge_state(const State& state) override { counts_.merge_state(state); }

 private:
  ConfusionConfig config_;
  ClassCounts counts_;
};

const bool confusion_registered = Meters::global().add<ConfusionConfig>(
    "confusion", "confusion matrix: samples by true and predicted class",
    [](const ConfusionConfig& config) { return std::make_unique<Confusion>(config); });

}  // namespace
}  // namespace phalanx
