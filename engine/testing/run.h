// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/experiment/experiment.h"

// Shared helpers of the tests of whole runs: a tiny run, its ranks as threads, and its results.
namespace phalanx::testing {

using Changes = std::vector<std::string>;  // overrides of a config, later ones over earlier ones
using Json = nlohmann::ordered_json;

/// Returns the config of the tiny run. It trains on 100 samples in batches of 32 for 3 epochs of 4 steps, the last of
/// which has 4 samples. It tests on 26 samples in batches of 16, which no number of ranks divides evenly.
ExperimentConfig tiny_config(const Changes& changes);

/// Returns the errors of check() for a valid config with these changes ("train: {epochs: 2}, strategy: single"),
/// or an empty string. `backend`: a backend that need not be linked; empty: the backend of the changes.
std::string complaint(const std::string& changes, const std::string& backend = "");

struct Finished {
  RunFolder folder;
  std::vector<ExperimentResult> results;  // by rank, like all other members
  std::vector<at::Tensor> weights;        // all parameters of each rank's replica
  std::vector<std::string> errors;        // text of the error that a rank threw; empty: no error
  std::vector<std::int64_t> began_after;  // steps before the first one; 0: did not resume; -1: never began
};

/// Callbacks by which a caller takes part in a run, on each rank.
struct Interference {
  std::function<bool(int rank)> stop_asked = [](int) { return false; };  // called after each step
  std::function<void(Engine&, int rank)> add_hooks = [](Engine&, int) {};
  std::function<void(Evaluator&)> add_evaluation_hooks = [](Evaluator&) {};
};

/// Trains tiny_config(changes) on `ranks` threads.
Finished run_tiny(int ranks, const RunFolder& folder, const Changes& changes, const Interference& interference = {});

/// Returns a path in the test's folder where nothing exists yet, or a new run folder at such a path.
std::string new_path();
RunFolder new_folder();

/// Returns the lines of metrics.jsonl: the lines of one split, or all lines without the values that depend on the
/// clock.
std::vector<Json> metrics(const Finished& run, const std::string& split);
std::vector<std::string> metrics_but_times(const RunFolder& folder);

Json summary(const Finished& run);

template <class T>
std::vector<T> column(const std::vector<Json>& lines, const char* key) {
  std::vector<T> values;
  for (const auto& line : lines) values.push_back(line.at(key).get<T>());
  return values;
}

/// Returns a metric by its name. The test fails if there is no such metric.
double metric(const Metrics& metrics, const std::string& name);

/// Returns all elements, one after another, of `tensors` or of the weights that a run has written.
at::Tensor flat(const std::vector<at::Tensor>& tensors);
at::Tensor final_weights(const Finished& run);

/// Returns |a - b| / |b|.
double relative_difference(const at::Tensor& a, const at::Tensor& b);

}  // namespace phalanx::testing
