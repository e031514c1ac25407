// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <c10/core/ScalarType.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/exported/arguments.h"
#include "models/exported/size_arithmetic.h"

namespace phalanx::exported {

struct Graph;

/// A node: an operator of the dispatcher, arithmetic on sizes, or a sub-graph.
struct Node {
  enum class Kind { kOperator, kDropout, kBatchNorm, kSymbolic, kSetGrad, kAutocast };

  Kind kind = Kind::kOperator;
  std::string name;  // with its line of Python, for error messages
  std::optional<c10::OperatorHandle> handle{};
  std::vector<Argument> arguments{};
  Arithmetic symbolic = nullptr;
  std::unique_ptr<Graph> graph{};            // its inputs are the arguments
  c10::IValue setting{};                     // of a sub-graph: true if gradients or autocast are enabled
  at::ScalarType dtype = at::kFloat;         // of autocast
  std::optional<std::size_t> float_dtype{};  // index of the argument that asks for float32
  std::optional<std::size_t> mode{};         // index of the argument that evaluation replaces
  c10::IValue in_evaluation{};               // the value that replaces it
  bool skipped_in_evaluation = false;
  bool rows_first = false;  // of a dropout: the first dimension of its input is the batch
  std::uint64_t layer = 0;
  std::vector<std::vector<std::size_t>> outputs{};  // slots; several for a list
  std::vector<bool> is_list{};
  std::vector<std::size_t> release{};  // slots to release after the node
};

/// Nodes in the order in which they run. Each value has a slot.
struct Graph {
  Slots slots;
  std::vector<std::size_t> inputs;  // slots
  std::vector<Argument> outputs;
  std::vector<Node> nodes;
};

}  // namespace phalanx::exported
