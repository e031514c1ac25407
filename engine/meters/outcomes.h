// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include "engine/meters/class_counts.h"
#include "engine/meters/meter.h"

namespace phalanx {

struct DecisionConfig {
  double threshold = 0;

  template <class V>
  void visit(V& v) {
    v("threshold", threshold,
      "scores above it are positive predictions: 0 for logits, 0.5 for probabilities; unused with class indices");
  }
};

struct AveragedConfig {
  DecisionConfig decision;
  std::string average = "macro";

  template <class V>
  void visit(V& v) {
    decision.visit(v);
    v("average", average, "macro: mean over classes; micro: over all decisions; none: one metric per class",
      config::one_of({"macro", "micro", "none"}));
  }
};

/// Counts correct and incorrect binary decisions per class. With class indices as target, the class with the highest
/// score is decided positively and the others negatively. With labels, every score above the threshold is a positive
/// decision.
class Outcomes {
 public:
  enum Column { kTruePositive, kFalsePositive, kFalseNegative, kTrueNegative, kColumns };

  explicit Outcomes(const DecisionConfig& config) : config_(config) {}

  void add(const Batch& batch, const Step::Result& result);

  /// Returns [K, kColumns] int64 over all ranks, and starts again. K = 0 if no rank has added anything. Collective.
  at::Tensor take(Communicator& group) { return counts_.take(group); }
  Meter::State state() const { return counts_.state(); }
  void merge_state(const Meter::State& state) { counts_.merge_state(state); }

 private:
  DecisionConfig config_;
  ClassCounts counts_;
};

/// A meter for true positives / (true positives + `misses`), or 0 if that is 0 / 0.
class ShareOfTruePositives final : public Meter {
 public:
  ShareOfTruePositives(std::string name, Outcomes::Column misses, const AveragedConfig& config)
      : name_(std::move(name)), misses_(misses), average_(config.average), outcomes_(config.decision) {}

  void add(const Batch& batch, const Step::Result& result) override { outcomes_.add(batch, result); }
  Metrics take(Communicator& group) override;
  State state() override { return outcomes_.state(); }
  void merge_state(const State& state) override { outcomes_.merge_state(state); }

 private:
  std::string name_;
  Outcomes::Column misses_;
  std::string average_;
  Outcomes outcomes_;
};

}  // namespace phalanx
