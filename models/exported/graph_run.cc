// SPDX-License-Identifier: Apache-2.0
#include "models/exported/graph_run.h"

#include <ATen/TensorOperators.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>

#include <cstdint>
#include <utility>

#include "framework/parallel/batch_variance.h"
#include "framework/parallel/padding_rows.h"
#include "framework/parallel/random_rows.h"
#include "framework/parallel/sync_batch_norm.h"

namespace phalanx::exported {
namespace {

using c10::IValue;

const auto kFloat64 = static_cast<std::int64_t>(at::kDouble);

// Sets autocast for a sub-graph and restores the previous state.
class AutocastScope {
 public:
  AutocastScope(bool on, at::ScalarType dtype)
      : on_(at::autocast::is_autocast_enabled(at::kCPU)), dtype_(at::autocast::get_autocast_dtype(at::kCPU)) {
    at::autocast::set_autocast_enabled(at::kCPU, on);
    if (on) at::autocast::set_autocast_dtype(at::kCPU, dtype);
  }
  ~AutocastScope() {
    at::autocast::set_autocast_enabled(at::kCPU, on_);
    at::autocast::set_autocast_dtype(at::kCPU, dtype_);
  }
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;

 private:
  bool on_;
  at::ScalarType dtype_;
};

// Runs a node that Phalanx computes differently in training: dropout by rows of the global batch, or batch norm over
// all ranks. Returns false for other nodes.
bool run_specially(const Node& node, const torch::jit::Stack& stack, const RunMode& mode, std::vector<IValue>& values) {
  if (node.kind == Node::Kind::kDropout && node.rows_first && stack[2].toBool()) {
    const auto key = RandomRows::current();
    if (!key) return false;
    const auto& input = stack[0].toTensor();
    values[node.outputs[0][0]] = input * dropout_factors(input, stack[1].toDouble(), node.layer, *key);
    return true;
  }
  if (node.kind != Node::Kind::kBatchNorm || !stack[5].toBool()) return false;
  if (mode.statistics == nullptr) {
    require_variance(stack[0].toTensor());
    return false;
  }
  const RunningStatistics running{
      .mean = stack[3].toTensor(), .variance = stack[4].toTensor(), .momentum = stack[6].toDouble()};
  values[node.outputs[0][0]] = sync_batch_norm(stack[0].toTensor(), stack[1].toTensor(), stack[2].toTensor(), running,
                                               stack[7].toDouble(), *mode.statistics);
  return true;
}

void run_node(const Node& node, std::vector<IValue>& values, const RunMode& mode) {
  torch::jit::Stack stack;
  stack.reserve(node.arguments.size());
  for (const auto& argument : node.arguments) stack.push_back(argument.value(values));
  if (node.float_dtype && mode.in_double) stack[*node.float_dtype] = kFloat64;
  const bool learns_nothing =
      node.kind == Node::Kind::kBatchNorm && mode.statistics == nullptr && PaddingRows::current();
  if ((!mode.training || learns_nothing) && node.mode) stack[*node.mode] = node.in_evaluation;
  if (learns_nothing) {
    // Clones the running statistics, which other rows may change before the gradient of these rows is computed.
    for (const std::size_t i : {3, 4}) {
      if (stack[i].isTensor()) stack[i] = stack[i].toTensor().clone();
    }
  }
  if (node.kind == Node::Kind::kSymbolic) {
    stack = {node.symbolic(stack)};
  } else if (node.kind == Node::Kind::kSetGrad) {
    const at::AutoGradMode gradients(node.setting.toBool() && at::GradMode::is_enabled());
    stack = run_graph(*node.graph, stack, mode);
  } else if (node.kind == Node::Kind::kAutocast) {
    const AutocastScope scope(node.setting.toBool(), node.dtype);
    stack = run_graph(*node.graph, stack, mode);
  } else if (run_specially(node, stack, mode, values)) {
    return;
  } else {
    node.handle->callBoxed(stack);
  }
  for (std::size_t i = 0; i < node.outputs.size() && i < stack.size(); ++i) {
    const auto& slots = node.outputs[i];
    if (!node.is_list[i]) {
      if (!slots.empty()) values[slots[0]] = std::move(stack[i]);
      continue;
    }
    if (stack[i].isTensorList()) {
      const auto list = stack[i].toTensorVector();
      for (std::size_t k = 0; k < slots.size(); ++k) values[slots[k]] = list.at(k);
    } else {
      for (std::size_t k = 0; k < slots.size(); ++k) values[slots[k]] = stack.at(k);  // outputs of a sub-graph
    }
  }
}

}  // namespace

std::vector<IValue> run_graph(const Graph& graph, const std::vector<IValue>& arguments, const RunMode& mode) {
  std::vector<IValue> values(graph.slots.size());
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) values[graph.inputs[i]] = arguments.at(i);
  for (const auto& node : graph.nodes) {
    if (mode.training || !node.skipped_in_evaluation) {
      try {
        run_node(node, values, mode);
      } catch (c10::Error& error) {
        error.add_context("in " + mode.program + ", " + node.name);
        throw;
      }
    }
    for (const auto slot : node.release) values[slot] = IValue();
  }
  std::vector<IValue> results;
  for (const auto& output : graph.outputs) results.push_back(output.value(values));
  return results;
}

}  // namespace phalanx::exported
