// SPDX-License-Identifier: Apache-2.0
#include "framework/testing/fake_device/operator_call.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/from_blob.h>
#include <c10/util/Exception.h>

#include <functional>
#include <string>
#include <utility>

#include "framework/testing/fake_device/memory.h"
#include "framework/testing/fake_device/tf32.h"

namespace phalanx::testing {
namespace {

bool is_here(const at::Tensor& tensor) { return tensor.defined() && tensor.device().type() == c10::kCUDA; }

// Calls `use` with each tensor in a value.
void for_each_tensor(const c10::IValue& value, const std::function<void(const at::Tensor&)>& use) {
  if (value.isTensor()) return use(value.toTensor());
  if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorVector()) use(tensor);
  } else if (value.isOptionalTensorList()) {
    for (const std::optional<at::Tensor> tensor : value.toOptionalTensorList()) {
      if (tensor && tensor->defined()) use(*tensor);
    }
  }
}

// Returns the value with each tensor replaced.
c10::IValue with_tensors(const c10::IValue& value, const std::function<at::Tensor(const at::Tensor&)>& replace) {
  if (value.isTensor()) return value.toTensor().defined() ? replace(value.toTensor()) : value;
  if (value.isTensorList()) {
    c10::List<at::Tensor> all;
    for (const at::Tensor& tensor : value.toTensorVector()) all.push_back(tensor.defined() ? replace(tensor) : tensor);
    return all;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> all;
    for (const std::optional<at::Tensor> tensor : value.toOptionalTensorList()) {
      all.push_back(tensor && tensor->defined() ? std::optional(replace(*tensor)) : tensor);
    }
    return all;
  }
  return value;
}

// Returns true if the operator divides by a number. LibTorch's kernels for CUDA then multiply by its reciprocal.
bool divides_by_number(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  const auto& name = op.schema().name();
  if (name != "aten::div" && name != "aten::div_") return false;
  const auto& overload = op.schema().overload_name();
  if (overload != "Tensor" && overload != "out") return false;
  return is_here(stack[0].toTensor()) && !is_here(stack[1].toTensor());
}

torch::jit::Stack multiply_by_reciprocal(const c10::OperatorHandle& division, torch::jit::Stack stack) {
  const auto dtype = stack[0].toTensor().scalar_type();
  stack[1] = stack[1].toTensor().to(dtype == at::kDouble ? at::kDouble : at::kFloat).reciprocal();
  const std::string name = division.schema().name() == "aten::div" ? "aten::mul" : "aten::mul_";
  c10::Dispatcher::singleton()
      .findSchemaOrThrow(name.c_str(), division.schema().overload_name().c_str())
      .callBoxed(stack);
  return stack;
}

// Computes on the CPU. Tensors that the operator only returns are new ones in each call.
torch::jit::Stack compute(const c10::OperatorHandle& op, torch::jit::Stack stack,
                          const OperatorCall::Inexact& inexact) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  for (std::size_t i = 0; i < stack.size(); ++i) {
    const auto& argument = op.schema().arguments()[i];
    if (argument.is_out()) {
      stack[i] = with_tensors(stack[i], [](const at::Tensor& out) { return at::empty({0}, out.options()); });
    } else if (inexact.tf32 && argument.alias_info() == nullptr) {
      stack[i] = with_tensors(stack[i], rounded_to_tf32);
    }
  }
  if (inexact.reciprocal) return multiply_by_reciprocal(op, std::move(stack));
  op.callBoxed(stack);
  return stack;
}

// The mirrors of the tensors of each result that must be copied there.
using Targets = std::vector<std::vector<at::Tensor>>;

void copy_to(const Targets& targets, const torch::jit::Stack& computed) {
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (targets[i].empty()) continue;
    std::size_t next = 0;
    for_each_tensor(computed[i], [&](const at::Tensor& tensor) {
      at::Tensor target = targets[i][next++];
      if (target.defined()) target.copy_(tensor);
    });
  }
}

at::Tensor like_on(const at::Tensor& tensor, c10::Device device) {
  return at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(device).requires_grad(false));
}

}  // namespace

at::Tensor mirrored(const at::Tensor& tensor) {
  if (!is_here(tensor)) return tensor;
  void* const data = tensor.numel() == 0 ? nullptr : mirror_of(tensor.const_data_ptr());
  return at::from_blob(data, tensor.sizes(), tensor.strides(), tensor.options().device(at::kCPU).requires_grad(false));
}

std::optional<Access> access_of(const at::Tensor& tensor, bool writes) {
  if (!is_here(tensor) || tensor.numel() == 0) return {};
  std::int64_t last = 0;
  for (std::int64_t d = 0; d < tensor.dim(); ++d) last += (tensor.size(d) - 1) * tensor.stride(d);
  return Access{.begin = static_cast<const std::byte*>(tensor.const_data_ptr()),
                .bytes = static_cast<std::size_t>(last + 1) * tensor.element_size(),
                .writes = writes};
}

OperatorCall::OperatorCall(const c10::OperatorHandle& op, const torch::jit::Stack& stack)
    : op_(op),
      arguments_(torch::jit::last(stack, op.schema().arguments().size()).vec()),
      mirrors_(converted(c10::kCPU)),
      inexact_{.tf32 = rounds_to_tf32(op.schema().name()), .reciprocal = divides_by_number(op, arguments_)} {}

// Tensors that the call only returns are replaced by empty ones, which the kernel resizes.
torch::jit::Stack OperatorCall::converted(c10::DeviceType type) const {
  torch::jit::Stack stack;
  for (std::size_t i = 0; i < arguments_.size(); ++i) {
    const auto& argument = op_.schema().arguments()[i];
    if (arguments_[i].isDevice()) {
      stack.emplace_back(c10::Device(type));
      continue;
    }
    stack.push_back(with_tensors(arguments_[i], [&](const at::Tensor& tensor) {
      if (!is_here(tensor)) return type == c10::kCPU ? tensor.clone() : tensor;  // the host may change it at once
      if (argument.is_out()) return at::empty({0}, tensor.options().device(type));
      return type == c10::kCPU ? mirrored(tensor) : like_on(tensor, type);
    }));
  }
  return stack;
}

std::vector<Access> OperatorCall::accesses() const {
  std::vector<Access> all;
  for (std::size_t i = 0; i < arguments_.size(); ++i) {
    const auto& argument = op_.schema().arguments()[i];
    const bool writes = argument.alias_info() != nullptr && argument.alias_info()->isWrite();
    // LibTorch's schema of this operator does not say that it writes its running statistics.
    const bool statistics = op_.schema().name() == "aten::native_batch_norm" && argument.name().starts_with("running_");
    for_each_tensor(arguments_[i], [&](const at::Tensor& tensor) {
      if (const auto access = access_of(tensor, writes || statistics)) all.push_back(*access);
    });
  }
  return all;
}

// Returns the argument that a result is, if the schema says that it is one.
std::optional<std::size_t> OperatorCall::argument_of_result(std::size_t index) const {
  const auto* const alias = op_.schema().returns()[index].alias_info();
  if (alias == nullptr) return {};
  const auto& arguments = op_.schema().arguments();
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].alias_info() != nullptr && arguments[i].alias_info()->beforeSets() == alias->beforeSets())
      return i;
  }
  return {};
}

bool OperatorCall::is_computed_in_place(std::size_t index) const {
  const auto argument = argument_of_result(index);
  return argument && !op_.schema().arguments()[*argument].is_out();
}

// Returns the tensors of the device for a result of the CPU, or of device "meta".
c10::IValue OperatorCall::own(std::size_t index, const c10::IValue& computed) {
  if (const auto argument = argument_of_result(index)) {
    if (!is_computed_in_place(index)) arguments_[*argument].toTensor().resize_(computed.toTensor().sizes());
    return arguments_[*argument];
  }
  return with_tensors(computed, [&](const at::Tensor& tensor) {
    TORCH_CHECK(tensor.is_meta() || tensor.numel() == 0 || !is_in_mirror(tensor.const_data_ptr()),
                op_.schema().operator_name().name, ": returns a view, which the fake device must create itself");
    return like_on(tensor, c10::kCUDA);
  });
}

void OperatorCall::run() {
  const auto computed = compute(op_, mirrors_, inexact_);
  results_.clear();
  for (std::size_t i = 0; i < computed.size(); ++i) results_.push_back(own(i, computed[i]));
  copy_to(targets(), computed);
}

bool OperatorCall::allocate_results() {
  for (const auto& argument : arguments_) {
    if (argument.isGenerator()) return false;
  }
  torch::jit::Stack computed;
  try {
    computed = compute(op_, converted(c10::kMeta), {});
  } catch (const std::exception&) {  // it has no kernel for sizes alone
    return false;
  }
  results_.clear();
  for (std::size_t i = 0; i < computed.size(); ++i) results_.push_back(own(i, computed[i]));
  return true;
}

Targets OperatorCall::targets() const {
  Targets targets(results_.size());
  for (std::size_t i = 0; i < results_.size(); ++i) {
    if (is_computed_in_place(i)) continue;
    for_each_tensor(results_[i], [&](const at::Tensor& tensor) { targets[i].push_back(mirrored(tensor)); });
  }
  return targets;
}

std::function<void()> OperatorCall::recomputation() const {
  return [op = op_, mirrors = mirrors_, inexact = inexact_, targets = targets()] {
    copy_to(targets, compute(op, mirrors, inexact));
  };
}

std::vector<Access> OperatorCall::result_accesses() const {
  std::vector<Access> all;
  for (std::size_t i = 0; i < results_.size(); ++i) {
    if (is_computed_in_place(i)) continue;
    for_each_tensor(results_[i], [&](const at::Tensor& tensor) {
      if (const auto access = access_of(tensor, true)) all.push_back(*access);
    });
  }
  return all;
}

}  // namespace phalanx::testing
