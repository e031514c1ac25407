// Runs a serialized graph (torch/_export/serde/schema.py of PyTorch 2.13). What a node needs is decided at load: the
// operator's handle, how each argument is made, and which values nobody reads any more after it.
#include "models/exported/program.h"

#include <ATen/TensorOperators.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/random.h"
#include "framework/parallel/batch_variance.h"
#include "framework/parallel/padding_rows.h"
#include "framework/parallel/random_rows.h"
#include "framework/parallel/sync_batch_norm.h"
#include "models/exported/archive.h"
#include "models/exported/arguments.h"
#include "models/exported/operators.h"

namespace phalanx::exported {
namespace {

using c10::IValue;
using json = nlohmann::ordered_json;

const auto kFloat32 = static_cast<std::int64_t>(at::kFloat), kFloat64 = static_cast<std::int64_t>(at::kDouble);

struct Graph;

struct Node {
  enum class Kind { kOperator, kDropout, kBatchNorm, kSymbolic, kSetGrad, kAutocast };

  Kind kind = Kind::kOperator;
  std::string name;  // and its line of Python, for errors
  std::optional<c10::OperatorHandle> handle{};
  std::vector<Argument> arguments{};
  std::function<IValue(const std::vector<IValue>&)> symbolic{};
  std::unique_ptr<Graph> graph{};            // of which the arguments are the inputs
  IValue setting{};                          // of a sub-graph: whether gradients or autocast are on
  at::ScalarType dtype = at::kFloat;         // of autocast
  std::optional<std::size_t> float_dtype{};  // the argument that asks for float32
  std::optional<std::size_t> mode{};         // the argument that evaluation replaces
  IValue in_evaluation{};                    // by this
  bool skipped_in_evaluation = false;
  bool rows_first = false;  // of a dropout: its input's first dimension is that of the batch
  std::uint64_t layer = 0;
  std::vector<std::vector<std::size_t>> outputs{};  // slots; more than one for a list
  std::vector<bool> is_list{};
  std::vector<std::size_t> release{};  // slots
};

struct Graph {
  Slots slots;
  std::vector<std::size_t> inputs;
  std::vector<Argument> outputs;
  std::vector<Node> nodes;
};

struct Facts {
  bool modes = false, training = false, batch_statistics = false;
};

// "net.py", line 12, in forward: the innermost line of Python that is not PyTorch's own.
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
  return found.empty() ? "no line of Python is known" : found;
}

std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  if (b == 0) throw std::domain_error("divides a size by 0");
  if (b == -1) return a == std::numeric_limits<std::int64_t>::min() ? a : -a;  // which the processor cannot divide
  return a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}

using Arithmetic = IValue (*)(const std::vector<IValue>&);
#define PHALANX_BINARY(expression)                               \
  [](const std::vector<IValue>& v) -> IValue {                   \
    const std::int64_t a = v.at(0).toInt(), b = v.at(1).toInt(); \
    return expression;                                           \
  }
const std::map<std::string, Arithmetic>& arithmetic() {
  static const std::map<std::string, Arithmetic> kAll{
      {"_operator.add", PHALANX_BINARY(a + b)},
      {"_operator.sub", PHALANX_BINARY(a - b)},
      {"_operator.mul", PHALANX_BINARY(a * b)},
      {"_operator.floordiv", PHALANX_BINARY(floor_divide(a, b))},
      {"_operator.mod", PHALANX_BINARY(a - b * floor_divide(a, b))},
      {"_operator.eq", PHALANX_BINARY(a == b)},
      {"_operator.ne", PHALANX_BINARY(a != b)},
      {"_operator.lt", PHALANX_BINARY(a < b)},
      {"_operator.le", PHALANX_BINARY(a <= b)},
      {"_operator.gt", PHALANX_BINARY(a > b)},
      {"_operator.ge", PHALANX_BINARY(a >= b)},
      {"torch.sym_max", PHALANX_BINARY(std::max(a, b))},
      {"torch.sym_min", PHALANX_BINARY(std::min(a, b))},
      {"_operator.neg", [](const std::vector<IValue>& v) -> IValue { return -v.at(0).toInt(); }},
      {"torch.sym_not", [](const std::vector<IValue>& v) -> IValue { return !v.at(0).toBool(); }},
  };
  return kAll;
}
#undef PHALANX_BINARY

class Builder {
 public:
  Builder(std::string path, Facts& facts, std::set<std::string> counters)
      : path_(std::move(path)), facts_(facts), counters_(std::move(counters)) {}

  std::unique_ptr<Graph> build(const json& source, const std::set<std::string>& kept) {
    auto graph = std::make_unique<Graph>();
    for (const auto& input : source.at("inputs")) graph->inputs.push_back(add(*graph, name_of(input)));
    for (const auto& serialized : source.at("nodes")) {
      const auto target = serialized.at("target").get<std::string>();
      // These check what the exporter saw, which autocast may change, and give nothing.
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
        throw;  // of a node in a sub-graph
      } catch (const std::runtime_error& error) {
        throw ConfigError("model.file: " + path_ + ": " + node.name + ": " + target + " " + error.what());
      } catch (const std::exception& error) {  // of the JSON library, or of parsing a number
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
    } else if (const auto found = arithmetic().find(target); found != arithmetic().end()) {
      node.kind = Node::Kind::kSymbolic;
      node.symbolic = found->second;
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
      throw std::runtime_error("gives its sub-graph " + std::to_string(node.arguments.size()) +
                               " values, which takes " + std::to_string(node.graph->inputs.size()));
    }
  }

  void fill_sub_graph(Node& node, const std::string& target, const json& inputs, const Graph& graph) {
    std::size_t at = 0;  // of the sub-graph among the inputs
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
    if (!node.handle) throw std::runtime_error("is no operator of this LibTorch");
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

  // Which argument tells training from evaluation.
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
      facts_.batch_statistics |= is_true(training);
      if (node.arguments[*index("running_mean")].reads().empty()) return;  // statistics of the batch, always
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
    facts_.modes = true;
    facts_.training |= training;
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

  std::string path_;
  Facts& facts_;
  std::set<std::string> counters_;  // inputs that count batches for batch norm
};

// Autocast as a sub-graph wants it, and afterwards as before.
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

}  // namespace

struct Program::Implementation {
  std::string path;
  Facts facts;
  std::unique_ptr<Graph> graph;
  std::vector<ProgramTensor> inputs, outputs;
  std::int64_t least_rows = 0;
  NamedTensors parameters, buffers;
  std::vector<at::Tensor> given;  // values of the graph's inputs; undefined: of the user's
  std::shared_ptr<const BatchStatistics> statistics;

  // Returns true if the parameters have been converted to float64. Then float32 in the program stands for the dtype
  // that the model was traced in.
  bool in_double() const { return !parameters.empty() && parameters[0].second.scalar_type() == at::kDouble; }

  std::vector<IValue> run(const Graph& of, const std::vector<IValue>& arguments, bool training) const;
  void run(const Node& node, std::vector<IValue>& values, bool training) const;
  bool run_specially(const Node& node, const torch::jit::Stack& stack, std::vector<IValue>& values) const;
  ProgramTensor tensor_of(const json& source, const json& argument, bool is_input, const json& ranges);
};

// In training, where phalanx has its own: dropout by rows of the global batch, batch norm over all ranks.
bool Program::Implementation::run_specially(const Node& node, const torch::jit::Stack& stack,
                                            std::vector<IValue>& values) const {
  if (node.kind == Node::Kind::kDropout && node.rows_first && stack[2].toBool()) {
    const auto key = RandomRows::current();
    if (!key) return false;
    const auto& input = stack[0].toTensor();
    values[node.outputs[0][0]] = input * dropout_factors(input, stack[1].toDouble(), node.layer, *key);
    return true;
  }
  if (node.kind != Node::Kind::kBatchNorm || !stack[5].toBool()) return false;
  if (!statistics) {
    require_variance(stack[0].toTensor());
    return false;
  }
  const RunningStatistics running{
      .mean = stack[3].toTensor(), .variance = stack[4].toTensor(), .momentum = stack[6].toDouble()};
  values[node.outputs[0][0]] = sync_batch_norm(stack[0].toTensor(), stack[1].toTensor(), stack[2].toTensor(), running,
                                               stack[7].toDouble(), *statistics);
  return true;
}

void Program::Implementation::run(const Node& node, std::vector<IValue>& values, bool training) const {
  torch::jit::Stack stack;
  stack.reserve(node.arguments.size());
  for (const auto& argument : node.arguments) stack.push_back(argument.value(values));
  if (node.float_dtype && in_double()) stack[*node.float_dtype] = kFloat64;
  const bool learns_nothing = node.kind == Node::Kind::kBatchNorm && !statistics && PaddingRows::current();
  if ((!training || learns_nothing) && node.mode) stack[*node.mode] = node.in_evaluation;
  if (node.kind == Node::Kind::kSymbolic) {
    stack = {node.symbolic(stack)};
  } else if (node.kind == Node::Kind::kSetGrad) {
    const at::AutoGradMode mode(node.setting.toBool() && at::GradMode::is_enabled());
    stack = run(*node.graph, stack, training);
  } else if (node.kind == Node::Kind::kAutocast) {
    const AutocastScope scope(node.setting.toBool(), node.dtype);
    stack = run(*node.graph, stack, training);
  } else if (run_specially(node, stack, values)) {
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
      for (std::size_t k = 0; k < slots.size(); ++k) values[slots[k]] = stack.at(k);  // of a sub-graph
    }
  }
}

std::vector<IValue> Program::Implementation::run(const Graph& of, const std::vector<IValue>& arguments,
                                                 bool training) const {
  std::vector<IValue> values(of.slots.size());
  for (std::size_t i = 0; i < of.inputs.size(); ++i) values[of.inputs[i]] = arguments.at(i);
  for (const auto& node : of.nodes) {
    if (training || !node.skipped_in_evaluation) {
      try {
        run(node, values, training);
      } catch (c10::Error& error) {
        error.add_context("in " + path + ", " + node.name);
        throw;
      }
    }
    for (const auto slot : node.release) values[slot] = IValue();
  }
  std::vector<IValue> results;
  for (const auto& output : of.outputs) results.push_back(output.value(values));
  return results;
}

ProgramTensor Program::Implementation::tensor_of(const json& source, const json& argument, bool is_input,
                                                 const json& ranges) {
  const auto refuse = [&](const std::string& why) { throw ConfigError("model.file: " + path + ": " + why); };
  const std::string kind = is_input ? "input" : "output";
  if (!argument.contains("as_tensor")) refuse("an " + kind + " of the program is no tensor");
  ProgramTensor tensor{.name = argument.at("as_tensor").at("name"), .shape = {}};
  const auto& meta = source.at("tensor_values").at(tensor.name);
  tensor.dtype = dtype_of(meta.at("dtype").get<int>());
  const auto& sizes = meta.at("sizes");
  const std::string marker = "Symbol('";
  const auto batch = sizes.empty() || !sizes[0].contains("as_expr")
                         ? std::string()
                         : sizes[0].at("as_expr").at("expr_str").get<std::string>();
  if (!batch.starts_with(marker)) {
    refuse("the first dimension of the " + kind + " " + tensor.name +
           " is not the batch: export with dynamic_shapes={\"" + tensor.name + "\": {0: torch.export.Dim(\"batch\")}}");
  }
  for (std::size_t i = 1; i < sizes.size(); ++i) {
    if (!sizes[i].contains("as_int")) {
      refuse("dimension " + std::to_string(i) + " of the " + kind + " " + tensor.name +
             " is dynamic: only the batch dimension may be");
    }
    tensor.shape.push_back(sizes[i].at("as_int").get<std::int64_t>());
  }
  if (is_input) {
    const auto symbol = batch.substr(marker.size(), batch.find('\'', marker.size()) - marker.size());
    const auto range = ranges.value(symbol, json::object());
    if (range.contains("min_val") && range.at("min_val").is_number()) {
      least_rows = std::max(least_rows, range.at("min_val").get<std::int64_t>());
    }
    if (range.contains("max_val") && range.at("max_val").is_number()) {
      refuse("the batch dimension of " + tensor.name + " has a maximum: export without Dim(max=...)");
    }
  }
  return tensor;
}

Program::Program(const std::string& path) : implementation_(std::make_unique<Implementation>()) {
  auto& self = *implementation_;
  self.path = path;
  const auto refuse = [&](const std::string& why) { throw ConfigError("model.file: " + path + ": " + why); };
  try {
    const Archive archive(path);
    const auto program = archive.program();
    const auto weights = archive.weights(), constants = archive.constants();
    const auto &module = program.at("graph_module"), &source = module.at("graph"),
               &ranges = program.at("range_constraints");
    std::set<std::string> kept, counters;
    std::set<const at::TensorImpl*> seen;
    const auto tensor_named = [&](const std::string& name) {
      auto found = weights.find(name);
      if (found != weights.end()) return found->second;
      found = constants.find(name);
      if (found == constants.end()) refuse("lacks the values of " + name);
      return found->second;
    };
    for (const auto& spec : module.at("signature").at("input_specs")) {
      const auto kind = union_of(spec).key();
      const auto& value = union_of(spec).value();
      if (kind == "user_input") {
        self.inputs.push_back(self.tensor_of(source, value.at("arg"), true, ranges));
        self.given.emplace_back();
        continue;
      }
      if (kind != "parameter" && kind != "buffer" && kind != "tensor_constant") {
        refuse("an input of kind " + kind + " is not supported");
      }
      const auto name = value.at(kind + "_name").get<std::string>();
      const auto slot = value.at("arg").at("name").get<std::string>();
      const auto tensor = tensor_named(name);
      kept.insert(slot);
      if (name.ends_with("num_batches_tracked")) counters.insert(slot);
      self.given.push_back(tensor);
      const bool listed = kind == "parameter" || (kind == "buffer" && value.at("persistent").get<bool>());
      if (!listed || !seen.insert(tensor.unsafeGetTensorImpl()).second) continue;
      // A parameter that is not learned is saved as a buffer is.
      (tensor.requires_grad() ? self.parameters : self.buffers).emplace_back(name, tensor);
    }
    for (const auto& spec : module.at("signature").at("output_specs")) {
      const auto kind = union_of(spec).key();
      if (kind != "user_output") {
        refuse("is no training program (" + kind + "): save what torch.export.export gives, without decompositions");
      }
      self.outputs.push_back(self.tensor_of(source, spec.at(kind).at("arg"), false, ranges));
    }
    self.graph = Builder(path, self.facts, std::move(counters)).build(source, kept);
    if (self.graph->inputs.size() != self.given.size() || self.graph->outputs.size() != self.outputs.size()) {
      refuse("its graph has " + std::to_string(self.graph->inputs.size()) + " inputs and " +
             std::to_string(self.graph->outputs.size()) + " outputs, and its signature " +
             std::to_string(self.given.size()) + " and " + std::to_string(self.outputs.size()));
    }
  } catch (const json::exception& error) {
    refuse(std::string("is malformed: ") + error.what());
  } catch (const std::logic_error& error) {
    refuse(std::string("is malformed: ") + error.what());
  } catch (const ConfigError&) {
    throw;
  } catch (const DataError& error) {
    throw ConfigError(std::string("model.file: ") + error.what());
  } catch (const std::runtime_error& error) {
    refuse(std::string("is malformed: ") + error.what());
  }
  if (self.facts.modes && !self.facts.training) {
    refuse("was exported in evaluation mode: call model.train() before torch.export.export");
  }
}

Program::~Program() = default;

const std::vector<ProgramTensor>& Program::inputs() const { return implementation_->inputs; }
const std::vector<ProgramTensor>& Program::outputs() const { return implementation_->outputs; }
std::int64_t Program::least_rows() const { return implementation_->least_rows; }
bool Program::uses_batch_statistics() const { return implementation_->facts.batch_statistics; }
NamedTensors Program::parameters() const { return implementation_->parameters; }
NamedTensors Program::buffers() const { return implementation_->buffers; }

std::vector<at::Tensor> Program::run(const std::vector<at::Tensor>& inputs, bool training) {
  std::vector<IValue> arguments;
  std::size_t next = 0;
  for (const auto& tensor : implementation_->given)
    arguments.emplace_back(tensor.defined() ? tensor : inputs.at(next++));
  std::vector<at::Tensor> outputs;
  for (auto& value : implementation_->run(*implementation_->graph, arguments, training)) {
    outputs.push_back(std::move(value).toTensor());
  }
  return outputs;
}

std::int64_t Program::synchronize(std::shared_ptr<const BatchStatistics> statistics) {
  std::int64_t layers = 0;
  for (const auto& node : implementation_->graph->nodes) {
    if (node.kind != Node::Kind::kBatchNorm) continue;
    if (node.arguments[1].reads().empty() || node.arguments[2].reads().empty()) {
      throw ConfigError("train.sync_batch_norm: " + node.name + " is batch norm without weight and bias");
    }
    ++layers;
  }
  implementation_->statistics = std::move(statistics);
  return layers;
}

}  // namespace phalanx::exported
