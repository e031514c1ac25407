// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/checkpoint/checkpoint_part.h"
#include "engine/config/experiment_config.h"
#include "engine/engine.h"
#include "framework/comm/mesh/mesh.h"
#include "framework/observe/times/step_clock.h"

namespace phalanx {

/// The number of samples of a global batch that each rank takes, as loader.shares asks.
///
/// With `measured`, ranks begin with equal shares. At the end of every epoch each rank tells the others how many
/// samples a second it processed, in 16 bytes. The time of a rank is the time of data, forward and backward, and also
/// of communication and update under strategies in which no rank waits for others. The share in the next epoch is
/// proportional to the rate that is expected of the rank (expected_rate()). All ranks compute the shares from the same
/// numbers. On a device, the host waits for it at the beginning and at the end of an epoch.
class SampleShares {
 public:
  /// `clock` must outlive the object. Throws ConfigError if the shares do not fit the ranks or the batch.
  SampleShares(const ExperimentConfig& config, const Mesh& mesh, StepClock& clock);

  /// Returns the shares of the ranks that divide a batch, for BatchSampler; null: nearly equal shares.
  std::shared_ptr<const std::vector<std::int64_t>> shares() const { return shares_; }

  bool measured() const { return measured_; }

  void attach(Engine& engine);  // with `measured`
  CheckpointPart part();        // the shares and the rates behind them; with `measured`

 private:
  void start_epoch();
  void end_epoch();
  double rate_of(std::int64_t measured_steps, double seconds) const;

  bool measured_ = false;
  std::int64_t global_batch_;
  std::shared_ptr<std::vector<std::int64_t>> shares_;
  std::vector<double> rates_;  // samples per second of each rank that divides a batch; 0: not known yet
  CommunicatorPtr all_;        // all ranks; some may have the same samples
  int place_;                  // of this rank among the ranks that divide a batch
  StepClock& clock_;
  bool counts_all_work_;
  PhaseTimes before_;         // times of the clock when the epoch began
  std::int64_t samples_ = 0;  // of this rank in this epoch
  std::int64_t steps_ = 0;    // of this epoch
};

/// Returns the number of samples of `batch` for each rank, in proportion to `rates` and at least one each. Shares of
/// equal rates differ by one at most. A rate of 0 counts as the mean of the others.
std::vector<std::int64_t> proportional_shares(std::int64_t batch, std::vector<double> rates);

/// Returns the rate to expect of a rank whose expected rate was `before` and whose measured rate is `measured`. It is
/// the mean of both, or the measured rate if they differ so much that the rank itself must have changed. 0 means
/// unknown.
double expected_rate(double before, double measured);

}  // namespace phalanx
