// SPDX-License-Identifier: Apache-2.0
#include "models/exported/graph_builder.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <map>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/random.h"
#include "models/exported/archive.h"
#include "models/exported/arguments.h"
#include "models/exported/operators.h"
#include "models/exported/size_arithmetic.h"

namespace phalanx::exported {
namespace {

using c10::IValue;
using json = nlohmann::ordered_json;

const auto kFloat32 = static_cast<std::int64_t>(at::kFloat);

// Returns the innermost line of Python outside of PyTorch: "net.py", line 12, in forward.
std::string python_line(const json& node) {
  const auto trace = node.at("metadata").value("stack_trace", std::string());
  std::string found;
  bool own = false;
  for (std::size_t begin = trace.find("File \""); begin != std::string::npos;
       begin = trace.find("File \"", begin + 1)) {
    auto line = trace.substr(begin, trace.find('\n', begin) - begin);
    const bool is_own = line.find("/torch/") == std::string::npos;
    if (is_own || !own) found = std::move(line);
    own |= is_own;
  }
  return found.empty() ? "the line of Python is unknown" : found;
}

class Builder {
 public:
  Builder(const std::string& path, const std::set<std::string>& counters, Modes& modes)
      : path_(path), counters_(counters), modes_(modes) {}

  std::unique_ptr<Graph> build(const json& source, const std::set<std::string>& kept) {
    auto graph = std::make_unique<Graph>();
    for (const auto& input : source.at("inputs")) graph->inputs.push_back(add(*graph, name_of(input)));
    for (const auto& serialized : source.at("nodes")) {
      const auto target = serialized.at("target").get<std::string>();
      // These nodes check properties that the exporter saw, which autocast may change, and have no outputs.
      if (target.starts_with("torch.ops.aten._assert_tensor_metadata")) continue;
      if (target.starts_with("torch.ops.aten.sym_constrain_range") ||
          target == "torch.ops.aten._assert_scalar.default") {
        continue;
      }
      Node node;
      node.name = "the node " + serialized.value("name", target) + " (" + python_line(serialized) + ")";
      for (const char letter : serialized.value("name", target)) {
        node.layer = mix(node.layer, static_cast<unsigned char>(letter));
      }
      try {
        fill(node, target, serialized, source, *graph);
      } catch (const ConfigError&) {
        throw;  // from a node in a sub-graph
      } catch (const std::runtime_error& error) {
        throw ConfigError("model.file: " + path_ + ": " + node.name + ": " + target + " " + error.what());
      } catch (const std::exception& error) {  // from the JSON library, or from parsing a number
        throw ConfigError("model.file: " + path_ + ": " + node.name + ": " + error.what());
      }
      graph->nodes.push_back(std::move(node));
    }
    for (const auto& output : source.at("outputs")) graph->outputs.emplace_back(output, nullptr, graph->slots);
    plan_release(*graph, kept);
    return graph;
  }

 private:
  static std::string name_of(const json& argument) {
    const auto& value = union_of(argument).value();
    if (!value.is_object()) return {};
    return value.value("name", value.value("as_name", std::string()));
  }

  static std::size_t add(Graph& graph, const std::string& name) {
    return graph.slots.try_emplace(name, graph.slots.size()).first->second;
  }

  void fill(Node& node, const std::string& target, const json& serialized, const json& source, Graph& graph) {
    const auto& inputs = serialized.at("inputs");
    if (target.starts_with("torch.ops.higher_order.")) {
      fill_sub_graph(node, target, inputs, graph);
    } else if (const auto symbolic = arithmetic_of(target); symbolic != nullptr) {
      node.kind = Node::Kind::kSymbolic;
      node.symbolic = symbolic;
      for (const auto& input : inputs) node.arguments.emplace_back(input.at("arg"), nullptr, graph.slots);
    } else {
      fill_operator(node, target, inputs, graph);
      prepare_modes(node, target, inputs, source);
    }
    for (const auto& output : serialized.at("outputs")) {
      const auto kind = union_of(output).key();
      std::vector<std::size_t> slots;
      if (kind == "as_tensors") {
        for (const auto& one : output.at(kind)) slots.push_back(add(graph, one.at("name")));
      } else if (kind == "as_tensor" || kind == "as_sym_int" || kind == "as_sym_bool") {
        slots.push_back(add(graph, name_of(output)));
      } else if (kind != "as_none") {
        throw std::runtime_error("gives a value of kind " + kind + ", which is not supported");
      }
      node.outputs.push_back(std::move(slots));
      node.is_list.push_back(kind == "as_tensors");
    }
    if (node.handle && node.outputs.size() < node.handle->schema().returns().size()) {
      throw std::runtime_error("gives fewer values than the operator does");
    }
    if (node.kind == Node::Kind::kDropout || node.kind == Node::Kind::kBatchNorm) {
      if (node.is_list[0] || node.outputs[0].empty()) throw std::runtime_error("gives no tensor");
    }
    if (node.graph && node.graph->inputs.size() != node.arguments.size()) {
      throw std::runtime_error("passes its sub-graph " + std::to_string(node.arguments.size()) +
                               " values, but it takes " + std::to_string(node.graph->inputs.size()));
    }
  }

  void fill_sub_graph(Node& node, const std::string& target, const json& inputs, const Graph& graph) {
    std::size_t at = 0;  // index of the sub-graph among the inputs
    if (target.ends_with(".wrap_with_set_grad_enabled")) {
      node.kind = Node::Kind::kSetGrad;
      node.setting = inputs.at(0).at("arg").at("as_bool").get<bool>();
      at = 1;
    } else if (target.ends_with(".wrap_with_autocast")) {
      node.kind = Node::Kind::kAutocast;
      if (inputs.at(0).at("arg").at("as_string") != "cpu") {
        throw std::runtime_error("is for another device than the CPU: export the model on the CPU");
      }
      const auto& dtype = inputs.at(1).at("arg");
      node.dtype = dtype.contains("as_scalar_type") ? dtype_of(dtype.at("as_scalar_type").get<int>()) : at::kBFloat16;
      node.setting = inputs.at(2).at("arg").at("as_bool").get<bool>();
      at = 4;
    } else {
      throw std::runtime_error("is an operator with sub-graphs that is not supported");
    }
    const auto& serialized = inputs.at(at).at("arg").at("as_graph").at("graph");
    node.graph = build(serialized, {});
    for (++at; at < inputs.size(); ++at) node.arguments.emplace_back(inputs.at(at).at("arg"), nullptr, graph.slots);
  }

  static void fill_operator(Node& node, const std::string& target, const json& inputs, const Graph& graph) {
    static const std::string kPrefix = "torch.ops.";
    const auto name_end = target.rfind('.'), space_end = target.find('.', kPrefix.size());
    if (!target.starts_with(kPrefix) || name_end <= space_end || space_end == std::string::npos) {
      throw std::runtime_error("is not supported");
    }
    auto name = target.substr(kPrefix.size(), space_end - kPrefix.size()) +
                "::" + target.substr(space_end + 1, name_end - space_end - 1);
    auto overload = target.substr(name_end + 1);
    if (overload == "default") overload.clear();
    node.handle = c10::Dispatcher::singleton().findSchema({name, overload});
    if (!node.handle) throw std::runtime_error("is not an operator of this LibTorch");
    if (!may_be_called(name)) {
      throw std::runtime_error("is not among the operators that a program from a file may call");
    }
    std::map<std::string, const json*> given;
    for (const auto& input : inputs) given.emplace(input.at("name").get<std::string>(), &input.at("arg"));
    for (const auto& formal : node.handle->schema().arguments()) {
      if (const auto found = given.find(formal.name()); found != given.end()) {
        node.arguments.emplace_back(*found->second, &formal, graph.slots);
        check_argument(formal, node.arguments.back().constant());
        if (found->second->contains("as_scalar_type") && node.arguments.back().constant() == IValue(kFloat32)) {
          node.float_dtype = node.arguments.size() - 1;
        }
        given.erase(found);
      } else if (formal.default_value()) {
        node.arguments.emplace_back(*formal.default_value());
      } else {
        throw std::runtime_error("lacks the argument " + formal.name());
      }
    }
    if (!given.empty()) throw std::runtime_error("has no argument " + given.begin()->first);
  }

  // Finds the argument that selects training or evaluation.
  void prepare_modes(Node& node, const std::string& target, const json& inputs, const json& source) {
    const auto index = [&](const std::string& name) {
      const auto found = node.handle->schema().argumentIndexWithName(name);
      return found ? std::optional<std::size_t>(*found) : std::nullopt;
    };
    const auto is_true = [&](std::size_t i) {
      const auto& constant = node.arguments[i].constant();
      return constant.isBool() && constant.toBool();
    };
    if (const auto train = index("train"); train && index("p")) {
      const auto& rate = node.arguments[*index("p")].constant();
      if (!rate.isDouble() || rate.toDouble() == 0) return;
      set_mode(node, *train, false, is_true(*train));
      if (target != "torch.ops.aten.dropout.default" || rate.toDouble() >= 1) return;
      node.kind = Node::Kind::kDropout;
      const auto& input = inputs.at(0).at("arg").at("as_tensor").at("name").get<std::string>();
      const auto& sizes = source.at("tensor_values").at(input).at("sizes");
      node.rows_first = !sizes.empty() && sizes[0].contains("as_expr") &&
                        sizes[0].at("as_expr").at("expr_str").get<std::string>().starts_with("Symbol(");
    } else if (const auto attention = index("dropout_p")) {
      const auto& rate = node.arguments[*attention].constant();
      if (rate.isDouble() && rate.toDouble() > 0) set_mode(node, *attention, 0.0, true);
    } else if (target == "torch.ops.aten.batch_norm.default") {
      const auto training = *index("training");
      modes_.batch_statistics |= is_true(training);
      if (node.arguments[*index("running_mean")].reads().empty()) return;  // always uses the statistics of the batch
      set_mode(node, training, false, is_true(training));
      if (is_true(training)) node.kind = Node::Kind::kBatchNorm;
    } else if (const auto use = index("use_input_stats");
               use && !node.arguments[*index("running_mean")].reads().empty()) {
      set_mode(node, *use, false, is_true(*use));
    } else if (target == "torch.ops.aten.add_.Tensor") {
      const auto& name = inputs.at(0).at("arg").at("as_tensor").at("name").get<std::string>();
      node.skipped_in_evaluation = counters_.contains(name);
    }
  }

  void set_mode(Node& node, std::size_t argument, IValue in_evaluation, bool training) {
    modes_.any = true;
    modes_.training |= training;
    node.mode = argument;
    node.in_evaluation = std::move(in_evaluation);
  }

  static void plan_release(Graph& graph, const std::set<std::string>& kept) {
    std::set<std::size_t> needed;
    for (const auto& name : kept) needed.insert(graph.slots.at(name));
    for (const auto& output : graph.outputs) needed.insert(output.reads().begin(), output.reads().end());
    for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
      const auto last = [&](std::size_t slot) {
        if (needed.insert(slot).second) node->release.push_back(slot);
      };
      for (const auto& slots : node->outputs) std::ranges::for_each(slots, last);
      for (const auto& argument : node->arguments) std::ranges::for_each(argument.reads(), last);
    }
  }

  const std::string& path_;
  const std::set<std::string>& counters_;
  Modes& modes_;
};

}  // namespace

BuiltGraph build_graph(const std::string& path, const json& source, const std::set<std::string>& kept,
                       const std::set<std::string>& counters) {
  BuiltGraph built;
  built.graph = Builder(path, counters, built.modes).build(source, kept);
  return built;
}

}  // namespace phalanx::exported
