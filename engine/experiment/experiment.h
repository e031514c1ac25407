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
#include "engine/engine.h"
#include "engine/evaluator.h"
#include "engine/experiment/config.h"
#include "engine/experiment/unreadable_samples.h"
#include "engine/meters/readings.h"
#include "engine/watch/run_folder.h"
#include "framework/comm/communicator.h"
#include "framework/ps/current_servers.h"

namespace phalanx {

/// Inputs of an experiment, apart from its config.
struct ExperimentContext {
  CommunicatorPtr world;                          // of the ranks that train; takes tensors of `device`
  c10::Device device{c10::kCPU};                  // this rank's, where it computes
  Splits splits;                                  // the same data on all ranks
  RunFolder folder;                               // exists; rank 0 writes to it
  std::shared_ptr<ps::CurrentServers> servers{};  // parameter servers of the run; null: none
  bool terminal = false;                          // standard output ends at one
  std::chrono::steady_clock::time_point started = std::chrono::steady_clock::now();  // when the user started the job
  std::function<bool()> stop_asked = [] { return false; };                           // polled once a step

  // Register hooks of the caller's own, after all others: of training, and of evaluations.
  std::function<void(Engine&)> add_hooks = [](Engine&) {};
  std::function<void(Evaluator&)> add_evaluation_hooks = [](Evaluator&) {};
};

struct ExperimentResult {
  std::int64_t steps = 0;
  bool stopped = false;                    // a rank was asked to stop before the end, or the time was up
  bool time_up = false;                    // it was the time
  std::string early_stop{};                // why it ended before the last step by itself; empty: it did not
  std::int64_t failed_checkpoints = 0;     // that were given up
  std::int64_t bucket_bytes = 0;           // of the parameters
  double operations_per_sample = 0;        // floating-point operations of training on one; 0: not counted
  std::vector<std::int64_t> shares{};      // of a batch, of each rank, at the end; empty: nearly equal ones
  std::optional<Unreadable> unreadable{};  // what loader.on_error: skip has skipped; the same on all ranks
  Readings train{};                        // the last ones of training; the same on all ranks, as those below
  Readings validation{};                   // of the final model; empty where there is no such split
  Readings test{};                         // of the final model
  std::string chosen_by{};                 // the split that decided on when to stop, the learning rate or the best
                                           // checkpoint: "validation" or "test"; empty: none of these was asked for
  std::string strategy{};                  // its name
  Figures figures{};                       // what it has counted on this rank
  Readings update{};                       // of the last update: loss scale, updates left out, norm of the gradients
  std::shared_ptr<Model> model{};          // this rank's replica, as it is after the last step
};

/// The config with what it leaves to the task: meters, the metric that the best checkpoints are kept by, and which
/// values of the task's own metric are best.
ExperimentConfig with_defaults_of(const Task& task, const ExperimentConfig& config);

/// Throws ConfigError for meters of a complete config that cannot measure what a model of the task is to give for these
/// samples; nothing is computed.
void check_meters(const Task& task, const SampleSpec& sample, const ExperimentConfig& config);

/// Throws ConfigError where that leaves open which values of a metric are best.
void check_directions(const ExperimentConfig& config);

/// Trains and tests as the config says, on this rank of the world. Collective; ranks may be threads of one process.
/// Rank 0 writes metrics.jsonl, summary.json and the weights, and shows progress. Throws ConfigError where config and
/// data do not fit, DataError, CommError, and Error when the result is not what the config expects.
ExperimentResult run_experiment(const ExperimentConfig& config, const ExperimentContext& context);

}  // namespace phalanx
