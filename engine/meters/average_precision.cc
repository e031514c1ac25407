// SPDX-License-Identifier: Apache-2.0
// Average precision of each class, "average_precision[i]", and its mean over the classes that have samples,
// "mean_average_precision" (torchnet's APMeter and mAPMeter). Needs all scores: see thresholds.h.
//
// Output [n, K] and target [n, K], above 0 for labels that apply, or class indices [n] int64; or one score per sample.
#include "engine/meters/meter.h"
#include "engine/meters/thresholds.h"
#include "framework/base/config/no_fields.h"

namespace phalanx {
namespace {

class AveragePrecision final : public Meter {
 public:
  void add(const Batch& batch, const Step::Result& result) override { scores_.add(batch, result); }

  Readings take(Communicator& group) override {
    Readings readings;
    for (const auto& thresholds : scores_.take(group)) {
      readings.emplace_back("average_precision[" + std::to_string(readings.size()) + "]",
                            average_precision(thresholds));
    }
    return readings;
  }

  State state() override { return scores_.state(); }
  void absorb(const State& state) override { scores_.absorb(state); }

 private:
  Scores scores_;
};

class MeanAveragePrecision final : public Meter {
 public:
  void add(const Batch& batch, const Step::Result& result) override { scores_.add(batch, result); }

  Readings take(Communicator& group) override {
    double sum = 0, classes = 0;
    for (const auto& thresholds : scores_.take(group)) {
      if (positives_of(thresholds) == 0) continue;
      sum += average_precision(thresholds);
      ++classes;
    }
    return {{"mean_average_precision", classes > 0 ? sum / classes : 0}};
  }

  State state() override { return scores_.state(); }
  void absorb(const State& state) override { scores_.absorb(state); }

 private:
  Scores scores_;
};

const bool each_registered =
    Meters::global().add<NoFields>("average_precision", "area under the precision-recall curve of each class",
                                   [](const NoFields&) { return std::make_unique<AveragePrecision>(); });

const bool mean_registered =
    Meters::global().add<NoFields>("mean_average_precision", "average precision, mean over classes",
                                   [](const NoFields&) { return std::make_unique<MeanAveragePrecision>(); });

}  // namespace
}  // namespace phalanx
