// Area under the receiver operating characteristic (torchnet's AUCMeter); of several classes the mean over those that
// have samples of both kinds, each against the rest. Needs all scores: see thresholds.h.
//
// Output [n] or [n, 1] with target 0 or 1; or [n, K] with target [n, K], or class numbers [n] int64.
#include "engine/meters/meter.h"
#include "engine/meters/thresholds.h"
#include "framework/base/config/no_fields.h"

namespace phalanx {
namespace {

class Auc final : public Meter {
 public:
  void add(const Batch& batch, const Step::Result& result) override { scores_.add(batch, result); }

  Readings take(Communicator& group) override {
    double sum = 0, classes = 0;
    for (const auto& thresholds : scores_.take(group)) {
      if (positives_of(thresholds) == 0 || negatives_of(thresholds) == 0) continue;
      sum += area_under_roc(thresholds);
      ++classes;
    }
    return {{"auc", classes > 0 ? sum / classes : 0}};
  }

  State state() override { return scores_.state(); }
  void absorb(const State& state) override { scores_.absorb(state); }

 private:
  Scores scores_;
};

const bool registered = Meters::global().add<NoFields>("auc", "area under the ROC curve, mean over classes",
                                                       [](const NoFields&) { return std::make_unique<Auc>(); });

}  // namespace
}  // namespace phalanx
