// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "datasets/dataset.h"
#include "engine/checkpoint/carried_state.h"
#include "engine/config/experiment_config.h"
#include "engine/engine.h"
#include "engine/evaluator.h"
#include "engine/experiment/expectation_result.h"
#include "engine/hooks/unreadable_samples.h"
#include "engine/plan/step_communication.h"
#include "engine/run_folder.h"
#include "framework/base/metrics.h"
#include "framework/comm/communicator.h"
#include "framework/ps/current_servers.h"

namespace phalanx {

/// The inputs of a rank that trains or evaluates, in addition to the config.
struct ExperimentContext {
  CommunicatorPtr world;                          // ranks that train; moves tensors of `device`
  c10::Device device{c10::kCPU};                  // where this rank computes
  Splits splits;                                  // the same data on all ranks
  RunFolder folder;                               // exists; rank 0 writes to it
  std::shared_ptr<ps::CurrentServers> servers{};  // parameter servers of the run; null or empty: none
  bool terminal = false;                          // true if standard output is a terminal
  std::chrono::steady_clock::time_point started = std::chrono::steady_clock::now();  // when the user started the job
  std::function<bool()> stop_asked = [] { return false; };                           // polled once a step
  bool same_processors = true;  // false: the last bits of the ranks' results differ, and so do their replicas
  bool wrong_before = false;    // this rank has computed wrongly before the job was started again

  /// Called if the replica check finds that this rank has computed wrongly, with the text that says so.
  std::function<void(const std::string& text)> computed_wrongly = [](const std::string&) {};

  /// If not null, a rank that loses a peer keeps its state there, and the run can be continued with it on the ranks
  /// that are left, by another call of run_experiment().
  std::shared_ptr<Recovery> recovery{};

  /// Returns true if other ranks wait to take part in the run, which has a `recovery` then; polled once a step. After
  /// that, run_experiment() throws NewcomersWait on all ranks after the same step.
  std::function<bool()> newcomers_wait = [] { return false; };

  // Let callers add hooks to training and to evaluations. Unless they name another phase, these belong to
  // HookPhase::kUser: they are called after everything that measures, evaluates and saves.
  std::function<void(Engine&)> add_hooks = [](Engine&) {};
  std::function<void(Evaluator&)> add_evaluation_hooks = [](Evaluator&) {};

  /// Returns the size of the run's recording on all ranks, if there is one (framework.record). Called once after
  /// training, on all ranks at the same time.
  std::function<std::optional<std::int64_t>()> recorded_bytes = [] { return std::optional<std::int64_t>(); };
};

struct ExperimentResult {
  std::int64_t steps = 0;
  bool stopped = false;                    // a rank was asked to stop, or the time was up
  bool time_up = false;                    // the time was the reason
  std::string early_stop{};                // reason of early stopping; empty: it did not stop early
  std::int64_t failed_checkpoints = 0;     // checkpoints that were abandoned
  std::int64_t repaired_tensors = 0;       // by the replica check
  std::int64_t bucket_bytes = 0;           // size of the buckets of parameters
  double operations_per_sample = 0;        // floating-point operations to train on one; 0: not counted
  std::vector<std::int64_t> shares{};      // each rank's share of a batch at the end; empty: equal
  std::optional<Unreadable> unreadable{};  // samples skipped by loader.on_error: skip; same on all ranks
  Metrics train{};                         // last metrics of training; all metrics are the same on all ranks
  Metrics validation{};                    // of the final model; empty: there is no such split
  Metrics test{};                          // of the final model

  /// The split that decided when to stop, the learning rate or the best checkpoint: "validation" or "test". Empty if
  /// none of these was asked for.
  std::string chosen_by{};

  std::string strategy{};          // name of the strategy
  Metrics metrics{};               // counters of the strategy on this rank
  Metrics update{};                // of the last update: loss scale, skipped updates, norm of the gradients
  std::shared_ptr<Model> model{};  // this rank's replica after the last step

  std::optional<std::int64_t> recorded_bytes{};   // of all ranks; absent: the run is not recorded
  std::vector<std::int64_t> peak_memory{};        // most resident bytes of each rank's process (peak_resident_bytes())
  std::optional<StepCommunication> traffic{};     // of an ordinary step; only counted if expect.traffic is set
  std::vector<ExpectationResult> expectations{};  // on rank 0, unless the run was stopped
  std::string unmet{};                            // list_unmet() of these, on all ranks
};

/// Trains and tests on this rank of the world, as the config asks. Rank 0 writes metrics.jsonl, summary.json and the
/// weights, and shows progress. Collective; ranks may be threads of one process.
///
/// With ExperimentContext::recovery, an error of kind CommError::kPeerLost leaves the state of the run at the end of
/// its last complete step there, once training has begun, or the newest copies of the state, if the strategy needs
/// them. A call with Recovery::rebuilt, in a world of the ranks that are left, goes on from there.
///
/// A call that ends with NewcomersWait leaves the state, or a copy, of the end of a step there. It is continued in the
/// same way, in a world to which ranks with nothing_carried() have been added at its end.
///
/// Throws ConfigError if the config does not fit the data, DataError, CommError, and ExpectationError if the result is
/// not what the config expects, after everything was written.
ExperimentResult run_experiment(const ExperimentConfig& config, const ExperimentContext& context);

}  // namespace phalanx
