// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "models/exported/graph.h"

namespace phalanx::exported {

/// Properties of the training and evaluation modes that the operators of a graph show.
struct Modes {
  bool any = false;               // an operator behaves differently in training and evaluation
  bool training = false;          // one of these operators is in training mode
  bool batch_statistics = false;  // a batch norm uses the statistics of the batch
};

struct BuiltGraph {
  std::unique_ptr<Graph> graph;
  Modes modes;
};

/// Builds a serialized graph (torch/_export/serde/schema.py of PyTorch 2.13) with its sub-graphs. It determines for
/// each node the operator's handle, how each argument is created, and which values no later node reads. `kept` has the
/// names of inputs whose values are never released, and `counters` the ones that count batches for batch norm. Throws
/// ConfigError, with `path`, the node and its line of Python, for unsupported parts, and an exception of the JSON
/// library or a std::runtime_error for a malformed graph.
BuiltGraph build_graph(const std::string& path, const nlohmann::ordered_json& source, const std::set<std::string>& kept,
                       const std::set<std::string>& counters);

}  // namespace phalanx::exported
