// SPDX-License-Identifier: Apache-2.0
#include "models/torchscript/script.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/passes/inliner.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/csrc/jit/serialization/import.h>

#include <array>
#include <fstream>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "framework/base/error.h"

namespace phalanx::torchscript {
namespace {

using c10::IValue;
using torch::jit::Node;

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw ConfigError("model.file: " + path + ": " + why);
}

torch::jit::Module load(const std::string& path) {
  if (!std::ifstream(path)) refuse(path, "cannot be opened");
  const auto unreadable = [&](const std::string& why) {
    refuse(path,
           "cannot be read as a program of torch.jit.save (torch.save writes no program, and those of "
           "torch.export.save are for the model \"exported\"): " +
               why);
  };
  try {
    return torch::jit::load(path, c10::Device(c10::kCPU));
  } catch (const c10::Error& error) {
    unreadable(error.what_without_backtrace());
  } catch (const std::exception& error) {
    unreadable(error.what());  // thrown by the JIT compiler, for example for an unknown operator
  }
  __builtin_unreachable();
}

// Returns "net.py, line 12: ", or an empty string if the file has no source positions.
std::string place_of(const Node& node) {
  auto range = node.sourceRange();
  if (const auto original = range.findSourceRangeThatGenerated()) range = *original;
  const auto place = range.file_line_col();
  if (!place) return "";
  return std::get<0>(*place) + ", line " + std::to_string(std::get<1>(*place)) + ": ";
}

// Returns the value of an operator's argument if it has an argument of this name that is a constant.
std::optional<IValue> constant(const Node& node, std::string_view name) {
  const auto* const schema = node.maybeSchema();
  if (schema == nullptr) return std::nullopt;
  for (std::size_t i = 0; i < schema->arguments().size() && i < node.inputs().size(); ++i) {
    if (schema->arguments()[i].name() == name) return torch::jit::toIValue(node.inputs()[i]);
  }
  return std::nullopt;
}

bool is_zero(const std::optional<IValue>& value) { return value && value->isDouble() && value->toDouble() == 0; }

}  // namespace

struct Script::Implementation {
  // A tensor that the program replaces instead of changing in place, and the attribute that holds it.
  struct Kept {
    torch::jit::ObjectPtr owner;
    std::size_t slot;
    at::Tensor tensor;
  };

  std::string path;
  torch::jit::Module module;
  NamedTensors parameters, buffers;
  std::vector<Kept> kept;
  std::size_t min_inputs = 0, max_inputs = 0;
  std::int64_t batch_norms = 0;
  bool replaces_buffers = false;

  void take_tensors(bool learned);
  void check_arguments(const c10::FunctionSchema& schema);
  void check(const torch::jit::Block& block);
  void check(const Node& node);
  void check_mode(const Node& node);
  void check_change(const Node& node);
  void put_back();
};

// Old files do not distinguish buffers from other tensor attributes.
void Script::Implementation::take_tensors(bool learned) {
  std::set<const at::TensorImpl*> seen;
  std::set<const void*> storages;
  for (const auto& [name, tensor] : parameters) seen.insert(tensor.unsafeGetTensorImpl());
  for (const auto& named : module.named_modules()) {
    const auto type = named.value.type();
    const auto owner = named.value._ivalue();
    for (std::size_t i = 0; i < type->numAttributes(); ++i) {
      const auto& value = owner->getSlot(i);
      if (!value.isTensor() || !value.toTensor().defined()) continue;
      const at::Tensor& tensor = value.toTensor();
      if ((type->is_parameter(i) && tensor.requires_grad()) != learned) continue;
      if (!learned) kept.push_back({owner, i, tensor});
      if (!seen.insert(tensor.unsafeGetTensorImpl()).second) continue;
      const auto name = (named.name.empty() ? "" : named.name + ".") + type->getAttributeName(i);
      (learned ? parameters : buffers).emplace_back(name, tensor);
      if (!learned) continue;
      if (tensor.scalar_type() != at::kFloat) {
        refuse(path, "the parameter " + name + " is " + at::toString(tensor.scalar_type()) +
                         ", but training takes float32: call .float() on the module before it is saved");
      }
      if (!storages.insert(tensor.storage().unsafeGetStorageImpl()).second) {
        refuse(path, "the parameter " + name + " shares memory with another one, of which it is a view");
      }
      if (!tensor.is_contiguous()) tensor.set_data(tensor.contiguous());
    }
  }
}

void Script::Implementation::check_arguments(const c10::FunctionSchema& schema) {
  for (std::size_t i = 1; i < schema.arguments().size(); ++i) {  // the first argument is the module
    const auto& argument = schema.arguments()[i];
    const bool takes_tensors = c10::TensorType::get()->isSubtypeOf(*argument.type());
    if (takes_tensors && max_inputs == i - 1) ++max_inputs;
    if (argument.default_value()) continue;
    if (!takes_tensors) {
      refuse(path, "its forward takes " + argument.name() + ", which is " + argument.type()->repr_str() +
                       " and not a tensor");
    }
    min_inputs = i;
  }
}

// A constant mode does not follow train(); torch.jit.trace creates such constants.
void Script::Implementation::check_mode(const Node& node) {
  const std::string hint =
      ", so it would not differ between training and evaluation: use torch.jit.script, which keeps self.training, and "
      "not torch.jit.trace";
  for (const auto* name : {"train", "training"}) {
    const auto mode = constant(node, name);
    if (!mode || is_zero(constant(node, "p")) || is_zero(constant(node, "dropout"))) continue;
    refuse(path, place_of(node) + node.kind().toQualString() + " has the constant " + name + "=" +
                     (mode->isBool() && mode->toBool() ? "True" : "False") + hint);
  }
  const auto rate = constant(node, "dropout_p");
  if (rate && !is_zero(rate)) {
    refuse(path, place_of(node) + node.kind().toQualString() + " has a constant dropout_p" + hint);
  }
}

// Assigned tensors are put back after each run. Other assigned state is refused, because checkpoints would not have it.
void Script::Implementation::check_change(const Node& node) {
  const auto type = node.inputs().at(0)->type()->cast<c10::ClassType>();
  if (!type || !type->is_module()) return;
  const auto& name = node.s(c10::attr::name);
  const auto slot = type->getAttributeSlot(name);
  if (type->is_parameter(slot)) {
    refuse(path,
           place_of(node) + "its forward assigns to the parameter " + name + ", which only the optimizer may change");
  }
  if (!type->getAttribute(slot)->isSubtypeOf(*c10::TensorType::get())) {
    refuse(path, place_of(node) + "its forward assigns to the attribute " + name + ", which is " +
                     type->getAttribute(slot)->repr_str() +
                     " and would be in no checkpoint: make it a buffer, or do not change it");
  }
  replaces_buffers = true;
}

void Script::Implementation::check(const Node& node) {
  check_mode(node);
  if (node.kind() == c10::prim::SetAttr) check_change(node);
  constexpr std::array kNorms{"aten::batch_norm", "aten::native_batch_norm", "aten::_batch_norm_impl_index",
                              "aten::cudnn_batch_norm"};
  for (const auto* norm : kNorms) batch_norms += node.kind().toQualString() == std::string_view(norm) ? 1 : 0;
  for (const auto* block : node.blocks()) check(*block);
}

void Script::Implementation::check(const torch::jit::Block& block) {
  for (const auto* node : block.nodes()) check(*node);
}

// Keeps the tensors of named_buffers() the same objects, since callers may hold handles to them.
void Script::Implementation::put_back() {
  const at::NoGradGuard no_grad;
  for (auto& [owner, slot, tensor] : kept) {
    const auto now = owner->getSlot(slot).toTensor();
    if (now.is_same(tensor)) continue;
    tensor.copy_(now);
    owner->setSlot(slot, tensor);
  }
}

Script::Script(const std::string& path) : implementation_(std::make_unique<Implementation>()) {
  auto& self = *implementation_;
  self.path = path;
  self.module = load(path);
  const auto forward = self.module.find_method("forward");
  if (!forward) refuse(path, "has no forward()");
  self.check_arguments(forward->function().getSchema());
  const auto graph = forward->graph()->copy();
  torch::jit::Inline(*graph);
  self.check(*graph->block());
  self.take_tensors(true);
  if (self.parameters.empty()) {
    refuse(path,
           "has no parameters that require a gradient: it was frozen (torch.jit.freeze), quantized, or saved after "
           "requires_grad_(False)");
  }
  self.take_tensors(false);
}

Script::~Script() = default;

std::size_t Script::min_inputs() const { return implementation_->min_inputs; }
std::size_t Script::max_inputs() const { return implementation_->max_inputs; }
const NamedTensors& Script::parameters() const { return implementation_->parameters; }
const NamedTensors& Script::buffers() const { return implementation_->buffers; }
std::int64_t Script::batch_norms() const { return implementation_->batch_norms; }

// Does not use Module::train(), which fails if a submodule has no mode.
void Script::train(bool on) {
  for (const auto& module : implementation_->module.modules()) {
    if (const auto slot = module.type()->findAttributeSlot("training")) module._ivalue()->setSlot(*slot, on);
  }
}

std::vector<at::Tensor> Script::run(const std::vector<at::Tensor>& inputs) {
  auto& self = *implementation_;
  const torch::jit::GraphOptimizerEnabledGuard as_written(false);
  const IValue result = self.module({inputs.begin(), inputs.end()});
  if (self.replaces_buffers) self.put_back();
  if (result.isTensor()) return {result.toTensor()};
  const auto no_tensors = [&](const IValue& value) {
    refuse(self.path,
           "its forward returns " + value.type()->repr_str() + ", but must return a tensor or a tuple of them");
  };
  if (!result.isTuple()) no_tensors(result);
  std::vector<at::Tensor> outputs;
  for (const auto& element : result.toTupleRef().elements()) {
    if (!element.isTensor()) no_tensors(result);
    outputs.push_back(element.toTensor());
  }
  return outputs;
}

}  // namespace phalanx::torchscript
