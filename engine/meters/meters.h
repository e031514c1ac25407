#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/batch.h"
#include "framework/comm/communicator.h"
#include "framework/parallel/step.h"

namespace phalanx {

/// A sum over samples and how many samples it is over: adds up exactly across batches and ranks.
struct Tally {
  double sum = 0;
  double weight = 0;
};

/// One quantity that is averaged over samples. Padding rows of a batch do not count.
struct Meter {
  std::string name;  // as in metrics.jsonl
  std::function<Tally(const Batch&, const Step::Result&)> measure;
};

Meter loss_meter();      // "loss"
Meter accuracy_meter();  // "accuracy": share of samples whose largest logit is the target class

/// Means by name, in the order of the meters.
using Readings = std::vector<std::pair<std::string, double>>;

/// Running tallies of several meters, on one rank.
class Meters {
 public:
  explicit Meters(std::vector<Meter> meters) : meters_(std::move(meters)), tallies_(meters_.size()) {}

  void add(const Batch& batch, const Step::Result& result);

  /// The means over all samples that all ranks of `group` added since the last take(): sums and weights are reduced and
  /// divided once. 0 where nothing was added. Collective.
  Readings take(Communicator& group);

 private:
  std::vector<Meter> meters_;
  std::vector<Tally> tallies_;
};

}  // namespace phalanx
