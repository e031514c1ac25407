// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "engine/checkpoint/checkpoint_part.h"
#include "engine/config/watch_config.h"
#include "engine/hooks.h"
#include "engine/meters/meter_set.h"
#include "engine/run_length.h"
#include "framework/base/metrics.h"
#include "framework/comm/communicator.h"

namespace phalanx {

/// The meters of training on one rank: all of them since they were last read, and the loss since the epoch began.
class TrainingMeters {
 public:
  /// `length`: of the run; it must outlive the object.
  TrainingMeters(const WatchConfig& watch, const RunLength& length);

  /// Adds a step.
  void add(const State& state);

  /// Returns the metrics over all ranks since the last call. `readers`: the ranks that have results (kResultAxes).
  /// Collective over them.
  Metrics take(Communicator& readers) { return meters_.take(readers); }

  /// Returns the metrics of the epoch that ends, called "mean loss" and so on. Empty if this process has taken no step
  /// of it. Collective like take().
  Metrics take_epoch(const State& state, Communicator& readers);

  /// Returns the parts of a checkpoint. If the config has changed the meters, they start empty when a run resumes. The
  /// object must outlive the parts. `saves`: true on one of several ranks that have the same results, which must be
  /// counted once.
  std::vector<CheckpointPart> parts(const CommunicatorPtr& readers, bool saves);

 private:
  CheckpointPart part(const std::string& name, MeterSet& meters, const CommunicatorPtr& readers, bool saves) const;

  MeterSet meters_, epoch_meters_;
  at::Tensor config_;  // the section watch.meters, as text
  const RunLength& length_;
  bool epoch_has_steps_ = false;  // this process has taken a step of the epoch
};

}  // namespace phalanx
