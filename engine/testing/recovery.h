// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/hooks.h"
#include "engine/testing/run.h"

// Runs that lose ranks, or get new ones, at exact points. They go on (faults.on_lost_rank: shrink), and train the tiny
// run for 12 steps, with evaluations, a checkpoint of averages, and random numbers in between.
namespace phalanx::testing {

/// Returns `changes` and then `more`.
Changes plus(Changes changes, const Changes& more);

/// Changes of a run in which only one rank has a part of the optimizer's state, which another one copies.
inline const Changes kSharded{"strategy=sharded", "determinism=run", "faults.copies_every=3",
                              "checkpoint.keep_last=10"};

/// A rank that ends when it has completed `step` steps: in a hook of the event, or in the evaluation.
struct PlannedLoss {
  int rank = 0;  // in the job
  std::int64_t step = 0;
  Event event = Event::kBackward;
  HookPhase phase = HookPhase::kUser;
  bool in_evaluation = false;
};

/// The samples of the steps of a run. Threads of ranks fill it.
class TakenSamples {
 public:
  struct Step {
    int ranks = 0;
    std::int64_t epoch = 0, samples = 0;     // over all ranks
    std::vector<std::uint32_t> checksums{};  // of the inputs of all samples
  };

  /// Adds the samples of a rank. A step that is repeated on fewer ranks replaces the one before.
  void add(const State& state, int ranks);

  std::map<std::int64_t, Step>& steps() { return steps_; }

  /// Returns the number of samples of each step from `first` on.
  std::vector<std::int64_t> sizes(std::int64_t first = 1) const;

  /// Returns the sorted checksums of the samples of an epoch.
  std::vector<std::uint32_t> epoch(std::int64_t number) const;

 private:
  std::mutex mutex_;
  std::map<std::int64_t, Step> steps_;
};

/// Trains on `ranks` threads, some of which end. Returns the run, whose first rank may have been lost. `errors`: gets
/// the errors that end ranks; null: there must be none. `taken`: gets the samples; may be null.
Finished run_losing(int ranks, const std::vector<PlannedLoss>& losses, const Changes& more = {},
                    std::vector<std::string>* errors = nullptr, TakenSamples* taken = nullptr);

/// Ranks that take part after a step of a run.
struct Growth {
  std::int64_t step = 0;
  int ranks = 2;  // before
  int newcomers = 1;
  int began_with = 0;                     // ranks of the job, some of which it has lost already; 0: `ranks`
  std::optional<std::int64_t> ends_at{};  // the first rank ends in this step, so the others have only what it gave them
};

/// Trains on threads, whose number grows.
Finished run_with_newcomers(const Growth& growth, const Changes& more = {}, TakenSamples* taken = nullptr);

/// Returns the steps of which a run has written the metrics of this split.
std::vector<std::int64_t> steps_of(const Finished& run, const std::string& split);

/// Returns the weights of a run that resumes on `ranks` ranks from the checkpoint of a step of another run.
at::Tensor resumed_weights(const Finished& from, std::int64_t step, int ranks, const Changes& changes);

}  // namespace phalanx::testing
