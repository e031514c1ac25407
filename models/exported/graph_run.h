// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/ivalue.h>

#include <string>
#include <vector>

#include "models/exported/graph.h"

namespace phalanx {
struct BatchStatistics;  // framework/parallel/sync_batch_norm.h
}

namespace phalanx::exported {

/// Settings of one run of a graph.
struct RunMode {
  const std::string& program;  // its file, for errors
  bool training = false;       // otherwise, what the program does in training is left out

  /// The parameters have been converted to float64: float32 in the program stands for the dtype that it was traced in.
  bool in_double = false;

  /// Batch norm in training takes statistics so; null: of this rank's batch.
  const BatchStatistics* statistics = nullptr;
};

/// Runs a graph node by node through LibTorch's dispatcher and returns its outputs. Values are released after their
/// last use. Throws c10::Error that names the node.
std::vector<c10::IValue> run_graph(const Graph& graph, const std::vector<c10::IValue>& arguments, const RunMode& mode);

}  // namespace phalanx::exported
