// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/experiment/experiment.h"

// Shared parts of the tests of whole runs: a tiny run, its ranks as threads, and its results.
namespace phalanx::testing {

using Changes = std::vector<std::string>;  // overrides of a config, later ones over earlier ones
using Json = nlohmann::ordered_json;

/// 100 samples by 32: 4 steps an epoch, the last of them with 4 samples, 3 epochs; 26 to test by 16, which no number of
/// ranks divides evenly.
ExperimentConfig tiny_config(const Changes& changes);

/// Returns the errors of check() for a good config with these changes ("train: {epochs: 2}, strategy: single"); empty:
/// there are none. `backend`: one that need not be linked; empty: the backend of the changes.
std::string complaint(const std::string& changes, const std::string& backend = "");

struct Finished {
  RunFolder folder;
  std::vector<ExperimentResult> results;  // by rank, as the rest
  std::vector<at::Tensor> weights;        // all parameters of each rank's replica
  std::vector<std::string> errors;        // what a rank threw; empty: nothing
  std::vector<std::int64_t> began_after;  // so many steps; 0: it did not go on with another run; -1: it never began
};

/// Callbacks by which a caller takes part in a run, on each rank.
struct Interference {
  std::function<bool(int rank)> stop_asked = [](int) { return false; };  // after each step
  std::function<void(Engine&, int rank)> add_hooks = [](Engine&, int) {};
  std::function<void(Evaluator&)> add_evaluation_hooks = [](Evaluator&) {};
};

/// Trains tiny_config(changes) on `ranks` threads.
Finished run_tiny(int ranks, const RunFolder& folder, const Changes& changes, const Interference& interference = {});

/// A path in the test's folder where there is nothing yet, and a run folder there.
std::string new_path();
RunFolder new_folder();

/// The lines of metrics.jsonl: of one split, and all of them without what depends on the clock.
std::vector<Json> metrics(const Finished& run, const std::string& split);
std::vector<std::string> metrics_but_times(const RunFolder& folder);

Json summary(const Finished& run);

template <class T>
std::vector<T> column(const std::vector<Json>& lines, const char* key) {
  std::vector<T> values;
  for (const auto& line : lines) values.push_back(line.at(key).get<T>());
  return values;
}

/// A reading by its name; a failure of the test where there is none.
double reading(const Readings& readings, const std::string& name);

/// All elements, one after the other: of tensors, and of the weights that a run has left.
at::Tensor flat(const std::vector<at::Tensor>& tensors);
at::Tensor final_weights(const Finished& run);

/// |a - b| / |b|
double relative_difference(const at::Tensor& a, const at::Tensor& b);

}  // namespace phalanx::testing
