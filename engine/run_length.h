// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace phalanx {

/// The length of a run on the ranks that there are. It changes when the run continues within an epoch that was begun
/// with batches of another size: that epoch then has the batches that are left of it, numbered from 0.
struct RunLength {
  std::int64_t samples = 0;  // in the training split
  std::int64_t batches = 0;  // in an epoch from its start
  std::int64_t steps = 0;    // of the whole run, unless something stops it before

  std::int64_t epochs = 0;
  std::int64_t most_steps = 0;  // train.max_steps; 0: no limit
  std::int64_t batch = 0;       // samples of a step over all ranks

  /// The same for train.global_batch_size: learning rate schedules count these steps.
  struct Configured {
    std::int64_t batches = 0, steps = 0, batch = 0;
  } configured{};

  /// The epoch within which the run has continued. Its number is -1 if there is none.
  struct Continued {
    std::int64_t epoch = -1, batches = 0;
    std::int64_t skipped = 0;  // samples before its batch 0
  } continued{};

  std::int64_t batches_of(std::int64_t epoch) const { return epoch == continued.epoch ? continued.batches : batches; }

  bool ends_epoch(std::int64_t epoch, std::int64_t cursor) const { return cursor == batches_of(epoch); }

  /// Returns the number of samples of an epoch that were taken before batch `cursor`. After the last batch, it may
  /// exceed the number of samples in the epoch.
  std::int64_t samples_before(std::int64_t epoch, std::int64_t cursor) const {
    return (epoch == continued.epoch ? continued.skipped : 0) + cursor * batch;
  }

  /// Returns the step that a run with batches of the configured size would be at with the same samples behind it.
  std::int64_t configured_step(std::int64_t epoch, std::int64_t cursor) const {
    return epoch * configured.batches + samples_before(epoch, cursor) / configured.batch;
  }

  /// Counts the steps of a run that has taken `step` steps and is at batch `cursor` of `epoch`.
  void count_steps(std::int64_t step, std::int64_t epoch, std::int64_t cursor) {
    const auto left = (batches_of(epoch) - cursor) + (epochs - epoch - 1) * batches;
    steps = most_steps == 0 ? step + left : std::min(step + left, most_steps);
  }
};

}  // namespace phalanx
