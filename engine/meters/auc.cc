// SPDX-License-Identifier: Apache-2.0
// Area under the receiver operating characteristic (torchnet's AUCMeter); for several classes, the mean over the
// classes that have positive and negative samples, each against the rest. If no class has both, the metric is NaN with
// a warning, as in scikit-learn. Needs all scores: see thresholds.h.
//
// Output [n] or [n, 1] with target 0 or 1; or [n, K] with target [n, K] or class indices [n] int64.
#include <cstdint>
#include <limits>
#include <utility>

#include "engine/meters/scores_meter.h"
#include "framework/base/config/no_fields.h"
#include "framework/base/log.h"

namespace phalanx {
namespace {

class Auc final : public ScoresMeter {
 public:
  Metrics take(Communicator& group) override {
    double sum = 0, classes = 0;
    std::int64_t positives = 0, negatives = 0;
    for (const auto& thresholds : take_scores(group)) {
      positives += positives_of(thresholds);
      negatives += negatives_of(thresholds);
      if (positives_of(thresholds) == 0 || negatives_of(thresholds) == 0) continue;
      sum += area_under_roc(thresholds);
      ++classes;
    }
    if (classes > 0) return {{"auc", sum / classes}};
    if (positives + negatives == 0) return {{"auc", 0}};
    if (group.rank() == 0) warn_of_one_kind(positives, negatives);
    return {{"auc", std::numeric_limits<double>::quiet_NaN()}};
  }

 private:
  void warn_of_one_kind(std::int64_t positives, std::int64_t negatives) {
    if (std::exchange(warned_, true)) return;
    log_warning() << "auc is undefined and reads NaN: no class has both positive and negative samples (" << positives
                  << " positive and " << negatives << " negative ones were measured); measure more samples at a time";
  }

  bool warned_ = false;
};

const bool auc_registered = Meters::global().add<NoFields>("auc", "area under the ROC curve, mean over classes",
                                                           [](const NoFields&) { return std::make_unique<Auc>(); });

}  // namespace
}  // namespace phalanx
