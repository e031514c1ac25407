// SPDX-License-Identifier: Apache-2.0
// Counts for each label: "true_positives[i]", "false_positives[i]", "false_negatives[i]" and "true_negatives[i]". See
// outcomes.h.
#include "engine/meters/outcomes.h"

namespace phalanx {
namespace {

class MultiLabelConfusion final : public Meter {
 public:
  explicit MultiLabelConfusion(const DecisionConfig& config) : outcomes_(config) {}

  void add(const Batch& batch, const Step::Result& result) override { outcomes_.add(batch, result); }

  Metrics take(Communicator& group) override {
    static constexpr const char* kNames[] = {"true_positives", "false_positives", "false_negatives", "true_negatives"};
    const at::Tensor counts = outcomes_.take(group);
    const auto* count = counts.data_ptr<std::int64_t>();
    Metrics metrics;
    for (std::int64_t i = 0; i < counts.size(0); ++i) {
      for (const char* name : kNames) {
        metrics.emplace_back(std::string(name) + "[" + std::to_string(i) + "]", static_cast<double>(*count++));
      }
    }
    return metrics;
  }

  State state() override { return outcomes_.state(); }
  void merge_state(const State& state) override { outcomes_.merge_state(state); }

 private:
  Outcomes outcomes_;
};

const bool multi_label_confusion_registered = Meters::global().add<DecisionConfig>(
    "multi_label_confusion", "true and false positives and negatives per label",
    [](const DecisionConfig& config) { return std::make_unique<MultiLabelConfusion>(config); });

}  // namespace
}  // namespace phalanx
