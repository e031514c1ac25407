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
  const std::string& program;  // its file, for error messages
  bool training = false;       // false: training behaviour of the program is skipped

  /// The parameters have been converted to float64, so float32 in the program means the dtype that it was traced with.
  bool in_double = false;

  /// The samples over which batch norm computes statistics in training; null: this rank's batch.
  const BatchStatistics* statistics = nullptr;
};

/// Runs a graph node by node through LibTorch's dispatcher and returns its outputs. Values are released after their
/// last use. Throws c10::Error that names the node.
std::vector<c10::IValue> run_graph(const Graph& graph, const std::vector<c10::IValue>& arguments, const RunMode& mode);

}  // namespace phalanx::exported
