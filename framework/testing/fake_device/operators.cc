// SPDX-License-Identifier: Apache-2.0
// The operators for tensors of the fake device. A few are implemented here. All others copy their tensors to the
// CPU, compute there and copy back, after checking that a GPU would have accepted the tensors.
#include "framework/testing/fake_device/operators.h"

#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/InferSize.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_local_scalar_dense.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/native_batch_norm.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/library.h>

#include <optional>
#include <set>
#include <string>
#include <tuple>

#include "framework/testing/fake_device/graph.h"
#include "framework/testing/fake_device/lstm_cell.h"
#include "framework/testing/fake_device/memory.h"

namespace phalanx::testing {
namespace {

const c10::DispatchKeySet kKeys(c10::DispatchKey::CUDA);

at::Device device_of(std::optional<at::Device> wanted) {
  if (wanted && wanted->has_index()) return *wanted;
  return c10::impl::VirtualGuardImpl(c10::kCUDA).getDevice();
}

at::Tensor empty(at::IntArrayRef sizes, std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                 std::optional<at::Device> device, std::optional<bool>, std::optional<at::MemoryFormat> format) {
  const c10::DeviceGuard guard(device_of(device));
  return at::detail::empty_generic(sizes, &fake_memory(), kKeys, dtype.value_or(at::kFloat), format);
}

at::Tensor empty_strided(at::IntArrayRef sizes, at::IntArrayRef strides, std::optional<at::ScalarType> dtype,
                         std::optional<at::Layout>, std::optional<at::Device> device, std::optional<bool>) {
  const c10::DeviceGuard guard(device_of(device));
  return at::detail::empty_strided_generic(sizes, strides, &fake_memory(), kKeys, dtype.value_or(at::kFloat));
}

// Returns a CPU tensor with the same elements.
at::Tensor mirrored(const at::Tensor& tensor) {
  if (tensor.device().type() != c10::kCUDA) return tensor;
  void* const data = tensor.numel() == 0 ? nullptr : mirror_of(tensor.const_data_ptr());
  return at::from_blob(data, tensor.sizes(), tensor.strides(), tensor.options().device(at::kCPU).requires_grad(false));
}

at::Tensor& copy(at::Tensor& to, const at::Tensor& from, bool) {
  const auto run = [to, from] { mirrored(to).copy_(mirrored(from)); };
  const FakeGraph::Whole whole;
  TORCH_CHECK(!whole.recorded() || (!to.is_cpu() && !from.is_cpu()),
              "a copy between host and device while a graph is recorded");
  whole.add(run);
  run();
  return to;
}

at::Tensor copy_and_resize(const at::Tensor& from, const at::Tensor& to) {
  to.resize_(from.sizes());
  mirrored(to).copy_(mirrored(from));
  return to;
}

void record_stream(at::Tensor&, at::Stream) {}

at::Scalar local_scalar_dense(const at::Tensor& tensor) {
  TORCH_CHECK(!FakeGraph::records(), "the host waits for the device while a graph is recorded");
  return at::_local_scalar_dense(mirrored(tensor));
}

const at::Tensor& resize(const at::Tensor& self, at::IntArrayRef sizes, std::optional<at::MemoryFormat> format) {
  const std::size_t bytes = at::detail::computeStorageNbytesContiguous(sizes, self.dtype().itemsize(),
                                                                       static_cast<std::size_t>(self.storage_offset()));
  if (self.sizes() == sizes && bytes <= self.storage().nbytes()) return self;  // keeps its strides
  const c10::Storage& storage = self.storage();
  if (bytes > storage.nbytes()) {
    const c10::DeviceGuard guard(self.device());
    c10::DataPtr memory = fake_memory().allocate(bytes);
    if (storage.nbytes() > 0) fake_memory().copy_data(memory.get(), storage.data(), storage.nbytes());
    storage.unsafeGetStorageImpl()->set_data_ptr_noswap(std::move(memory));
    storage.unsafeGetStorageImpl()->set_nbytes(bytes);
  }
  self.unsafeGetTensorImpl()->set_sizes_contiguous(sizes);
  if (format && *format != at::MemoryFormat::Preserve) self.unsafeGetTensorImpl()->empty_tensor_restride(*format);
  return self;
}

at::Tensor& set_storage(at::Tensor& self, at::Storage storage, std::int64_t offset, at::IntArrayRef sizes,
                        at::IntArrayRef strides) {
  self.unsafeGetTensorImpl()->set_storage_keep_dtype(std::move(storage));
  self.unsafeGetTensorImpl()->set_storage_offset(offset);
  self.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
  return self;
}

// Implemented here because its schema does not mention that it writes the running statistics: the fallback would update
// a copy of them.
std::tuple<at::Tensor, at::Tensor, at::Tensor> native_batch_norm(const at::Tensor& input,
                                                                 const std::optional<at::Tensor>& weight,
                                                                 const std::optional<at::Tensor>& bias,
                                                                 const std::optional<at::Tensor>& mean,
                                                                 const std::optional<at::Tensor>& variance,
                                                                 bool training, double momentum, double epsilon) {
  const auto mirrors = [](const std::optional<at::Tensor>& tensor) {
    return tensor && tensor->defined() ? mirrored(*tensor) : at::Tensor();
  };
  const auto compute = [=] {
    return at::native_batch_norm(mirrored(input), mirrors(weight), mirrors(bias), mirrors(mean), mirrors(variance),
                                 training, momentum, epsilon);
  };
  const FakeGraph::Whole whole;
  const auto [output, saved_mean, saved_variance] = compute();
  const auto device = input.device();
  std::tuple results(output.to(device), saved_mean.to(device), saved_variance.to(device));
  whole.add([compute, results] {
    const auto [output, saved_mean, saved_variance] = compute();
    mirrored(std::get<0>(results)).copy_(output);
    mirrored(std::get<1>(results)).copy_(saved_mean);
    mirrored(std::get<2>(results)).copy_(saved_variance);
  });
  return results;
}

bool may_be_mixed(const std::string& name) {
  return name == "aten::index.Tensor" || name == "aten::index_put_" || name == "aten::_index_put_impl_";
}

// Only scalars may be on the CPU among the operands of a GPU operator.
void check_place(const std::string& name, const at::Tensor& tensor, std::optional<at::Device>& device) {
  if (!tensor.defined()) return;
  if (tensor.is_cpu()) {
    TORCH_CHECK(tensor.dim() == 0 || may_be_mixed(name), name, ": expected all tensors to be on the same device, but ",
                "found one of the CPU with sizes ", tensor.sizes());
    return;
  }
  TORCH_CHECK(!device || *device == tensor.device(), name, ": found tensors on ", *device, " and ", tensor.device());
  device = tensor.device();
}

// Makes random operators use the generator of their device.
void draw_from_generator_of(const std::optional<at::Device>& device, const c10::OperatorHandle& op,
                            torch::jit::Stack& stack) {
  const auto& arguments = op.schema().arguments();
  for (std::size_t i = 0; device && i < arguments.size(); ++i) {
    auto& argument = stack[stack.size() - arguments.size() + i];
    if (arguments[i].name() == "generator" && argument.isNone()) {
      argument = at::globalContext().defaultGenerator(*device);
    }
  }
}

// Returns true for operators whose output size depends on values, which the host knows only after waiting for them.
bool waits(const std::string& name) {
  static const std::set<std::string> all{"aten::nonzero",           "aten::masked_select", "aten::unique_dim",
                                         "aten::_unique2",          "aten::equal",         "aten::repeat_interleave",
                                         "aten::unique_consecutive"};
  return all.contains(name);
}

// Computes now, and makes each replay compute again from and to the same memory.
void record(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  TORCH_CHECK(!waits(op.schema().operator_name().name), op.schema().operator_name().name,
              ": the host waits for the device while a graph is recorded");
  const auto arguments = torch::jit::last(*stack, op.schema().arguments().size()).vec();
  const auto compute = [op](torch::jit::Stack& values) {
    at::native::cpu_fallback(op, &values, /*error_on_views=*/true);
  };
  const FakeGraph::Whole whole;
  compute(*stack);
  const auto results = torch::jit::last(*stack, op.schema().returns().size()).vec();
  whole.add([compute, arguments, results] {
    torch::jit::Stack again = arguments;
    compute(again);
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (results[i].isTensor() && results[i].toTensor().defined() &&
          !results[i].toTensor().is_same(again[i].toTensor())) {
        mirrored(results[i].toTensor()).copy_(mirrored(again[i].toTensor()));
      }
      if (!results[i].isTensorList()) continue;
      const auto was = results[i].toTensorVector(), is = again[i].toTensorVector();
      for (std::size_t j = 0; j < was.size(); ++j) mirrored(was[j]).copy_(mirrored(is[j]));
    }
  });
}

void compute_on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const std::string& name = op.schema().operator_name().name;
  const auto arguments = torch::jit::last(*stack, op.schema().arguments().size());
  std::optional<at::Device> device;
  for (const auto& argument : arguments) {
    if (argument.isTensor()) check_place(name, argument.toTensor(), device);
    if (!argument.isTensorList()) continue;
    for (const at::Tensor& tensor : argument.toTensorVector()) check_place(name, tensor, device);
  }
  draw_from_generator_of(device, op, *stack);
  if (FakeGraph::records()) return record(op, stack);
  at::native::cpu_fallback(op, stack, /*error_on_views=*/true);
}

}  // namespace

void register_operators() {
  static torch::Library fallback(torch::Library::IMPL, "_", c10::DispatchKey::CUDA, __FILE__, __LINE__);
  fallback.fallback(torch::CppFunction::makeFromBoxedFunction<&compute_on_cpu>());
  static torch::Library m(torch::Library::IMPL, "aten", c10::DispatchKey::CUDA, __FILE__, __LINE__);
  m.impl("empty.memory_format", TORCH_FN(empty));
  m.impl("empty_strided", TORCH_FN(empty_strided));
  m.impl("copy_", TORCH_FN(copy));
  m.impl("_copy_from_and_resize", TORCH_FN(copy_and_resize));
  m.impl("_local_scalar_dense", TORCH_FN(local_scalar_dense));
  m.impl("native_batch_norm", TORCH_FN(native_batch_norm));
  m.impl("_thnn_fused_lstm_cell", TORCH_FN(lstm_cell));
  m.impl("_thnn_fused_lstm_cell_backward_impl", TORCH_FN(lstm_cell_backward));
  m.impl("convolution_backward", torch::CppFunction::makeFromBoxedFunction<&compute_on_cpu>());
  m.impl("record_stream", TORCH_FN(record_stream));
  m.impl("resize_", TORCH_FN(resize));
  m.impl("set_.source_Storage_storage_offset", TORCH_FN(set_storage));
  m.impl("set_.source_Tensor", TORCH_FN(at::native::set_tensor_));
  m.impl("as_strided", TORCH_FN(at::native::as_strided_tensorimpl));
  m.impl("_reshape_alias", TORCH_FN(at::native::_reshape_alias));
  m.impl("view", TORCH_FN(at::native::view));
  m.impl("unfold", TORCH_FN(at::native::unfold));
}

}  // namespace phalanx::testing
