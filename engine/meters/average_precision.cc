// SPDX-License-Identifier: Apache-2.0
// Average precision of each class, "average_precision[i]", and its mean over the classes that have samples,
// "mean_average_precision" (torchnet's APMeter and mAPMeter). Needs all scores: see thresholds.h.
//
// Output [n, K] and target [n, K], above 0 for labels that apply, or class indices [n] int64; or one score per sample.
#include "engine/meters/scores_meter.h"
#include "framework/base/config/no_fields.h"

namespace phalanx {
namespace {

class AveragePrecision final : public ScoresMeter {
 public:
  Metrics take(Communicator& group) override {
    Metrics metrics;
    for (const auto& thresholds : take_scores(group)) {
      metrics.emplace_back("average_precision[" + std::to_string(metrics.size()) + "]", average_precision(thresholds));
    }
    return metrics;
  }
};

class MeanAveragePrecision final : public ScoresMeter {
 public:
  Metrics take(Communicator& group) override {
    double sum = 0, classes = 0;
    for (const auto& thresholds : take_scores(group)) {
      if (positives_of(thresholds) == 0) continue;
      sum += average_precision(thresholds);
      ++classes;
    }
    return {{"mean_average_precision", classes > 0 ? sum / classes : 0}};
  }
};

const bool each_registered =
    Meters::global().add<NoFields>("average_precision", "area under the precision-recall curve of each class",
                                   [](const NoFields&) { return std::make_unique<AveragePrecision>(); });

const bool mean_registered =
    Meters::global().add<NoFields>("mean_average_precision", "average precision, mean over classes",
                                   [](const NoFields&) { return std::make_unique<MeanAveragePrecision>(); });

}  // namespace
}  // namespace phalanx
