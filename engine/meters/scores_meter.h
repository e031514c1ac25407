// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "engine/meters/meter.h"
#include "engine/meters/thresholds.h"

namespace phalanx {

/// The base of meters that need the scores of all samples. A subclass computes its metrics from them in take().
class ScoresMeter : public Meter {
 public:
  void add(const Batch& batch, const Step::Result& result) final { scores_.add(batch, result); }
  State state() final { return scores_.state(); }
  void merge_state(const State& state) final { scores_.merge_state(state); }

 protected:
  /// Returns the thresholds of each class and starts again, as Scores::take(). Collective.
  std::vector<Thresholds> take_scores(Communicator& group) { return scores_.take(group); }

 private:
  Scores scores_;
};

}  // namespace phalanx
