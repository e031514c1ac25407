// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/checkpoint/checkpoint_part.h"
#include "engine/engine.h"
#include "engine/experiment/config.h"
#include "engine/watch/step_clock.h"
#include "framework/comm/mesh.h"

namespace phalanx {

/// The number of samples of a global batch that each rank takes, by loader.shares.
///
/// With `measured`, ranks begin with equal shares. At the end of every epoch they tell each other how many samples a
/// second their own work got through, 16 bytes a rank: data, forward and backward, and under strategies that wait for
/// nobody communication and update too. The share of the next epoch is in proportion to what is expected of a rank then
/// (expected_rate()). All ranks compute the shares from the same numbers.
class SampleShares {
 public:
  /// `clock` must outlive it. Throws ConfigError where the shares do not fit the ranks or the batch.
  SampleShares(const ExperimentConfig& config, const Mesh& mesh, const StepClock& clock);

  /// Shares of the ranks that divide a batch, for DistributedSampler; null: nearly equal shares.
  std::shared_ptr<const std::vector<std::int64_t>> shares() const { return shares_; }

  bool measured() const { return measured_; }

  void attach(Engine& engine);  // with `measured`; before the hooks that write checkpoints
  CheckpointPart part();        // the shares, and what they were computed from; with `measured`

 private:
  void start_epoch();
  void end_epoch();

  bool measured_ = false;
  std::int64_t global_batch_;
  std::shared_ptr<std::vector<std::int64_t>> shares_;
  std::vector<double> rates_;  // samples per second, of each of the ranks that share a batch; 0: not known yet
  CommunicatorPtr all_;        // ranks, of which some may have the same samples
  int place_;                  // of this one among those that share a batch
  const StepClock& clock_;
  bool counts_all_work_;
  PhaseTimes before_;         // the epoch began
  std::int64_t samples_ = 0;  // of this rank, since then
};

/// So many samples of `batch` for each rank that they are in proportion to `rates`, at least one each. Equal rates have
/// shares that differ by one at most; a rate of 0 counts as the mean of the others.
std::vector<std::int64_t> proportional_shares(std::int64_t batch, std::vector<double> rates);

/// Returns the rate to expect of a rank whose rate was expected to be `before` and was `measured` now: the mean of both
/// or, if they differ so much that the rank itself must have changed, the measured one. 0: not known.
double expected_rate(double before, double measured);

}  // namespace phalanx
