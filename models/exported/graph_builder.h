// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "models/exported/graph.h"

namespace phalanx::exported {

/// Facts about training and evaluation that the operators of a graph tell.
struct Modes {
  bool any = false;               // an operator does something else in training than in evaluation
  bool training = false;          // one of them is in training mode
  bool batch_statistics = false;  // a batch norm takes statistics of the batch
};

struct BuiltGraph {
  std::unique_ptr<Graph> graph;
  Modes modes;
};

/// Builds a serialized graph (torch/_export/serde/schema.py of PyTorch 2.13) with its sub-graphs, and decides what each
/// node needs: the operator's handle, how each argument is made, and which values no later node reads. `kept` are the
/// names of inputs whose values are never released, `counters` those that count batches for batch norm. Throws
/// ConfigError with `path`, the node and its line of Python for what is not supported, and an exception of the JSON
/// library or a std::runtime_error for a graph that is malformed.
BuiltGraph build_graph(const std::string& path, const nlohmann::ordered_json& source, const std::set<std::string>& kept,
                       const std::set<std::string>& counters);

}  // namespace phalanx::exported
