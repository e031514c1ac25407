// SPDX-License-Identifier: Apache-2.0
// The operators for tensors of the fake device. A few are implemented here. All others compute on the CPU, after
// checking that a GPU has the operator and would have accepted the tensors.
#include "framework/testing/fake_device/operators.h"

#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/InferSize.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_local_scalar_dense.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/library.h>

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "framework/testing/fake_device/attention.h"
#include "framework/testing/fake_device/cuda_operators.h"
#include "framework/testing/fake_device/graph.h"
#include "framework/testing/fake_device/lstm_cell.h"
#include "framework/testing/fake_device/memory.h"
#include "framework/testing/fake_device/operator_call.h"
#include "framework/testing/fake_device/pinned_memory.h"
#include "framework/testing/fake_device/streams.h"

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

// Work on the current stream of a tensor's device. A recorded body must own its tensors.
int stream_on(const at::Device& device) {
  const c10::Stream stream = c10::impl::VirtualGuardImpl(c10::kCUDA).getStream(device);
  return Streams::global().number_of(device.index(), stream.id());
}

std::vector<Access> accesses(const at::Tensor& read, const at::Tensor& written) {
  std::vector<Access> all;
  if (const auto access = access_of(read, false)) all.push_back(*access);
  if (const auto access = access_of(written, true)) all.push_back(*access);
  return all;
}

bool is_on_device(const at::Tensor& tensor) { return !tensor.is_cpu(); }

// Copies between devices run on the current stream of the source, and the stream of the target waits before and after.
void copy_between(const at::Tensor& to, const at::Tensor& from) {
  auto& streams = Streams::global();
  const int source = stream_on(from.device()), target = stream_on(to.device());
  streams.wait(source, streams.record(target));
  streams.launch({.name = "aten::copy_", .stream = source, .accesses = accesses(from, to)},
                 [to = mirrored(to), from = mirrored(from)] { to.copy_(from); });
  streams.wait(target, streams.record(source));
}

// A copy from or to pinned memory is pending until something waits for the stream. Other copies read the host's memory
// at once, or block the host until they have written it.
void copy_with_host(const at::Tensor& to, const at::Tensor& from, bool non_blocking) {
  auto& streams = Streams::global();
  const at::Tensor& host = is_on_device(to) ? from : to;
  const int stream = stream_on(is_on_device(to) ? to.device() : from.device());
  const Streams::Launch launch{.name = "aten::copy_", .stream = stream, .accesses = accesses(from, to)};
  if (non_blocking && host.numel() > 0 && is_pinned_address(host.const_data_ptr())) {
    // Owns the tensor on the host: LibTorch's allocator of pinned memory does not reuse memory that is being copied.
    streams.launch_later(launch, [to = mirrored(to), from = mirrored(from)] { to.copy_(from); });
    return;
  }
  const at::Tensor source = is_on_device(to) && non_blocking ? from.clone() : from;
  streams.launch(launch, [to = mirrored(to), from = mirrored(source)] { to.copy_(from); });
  if (!non_blocking || !is_on_device(to)) streams.synchronize(stream);
}

at::Tensor& copy(at::Tensor& to, const at::Tensor& from, bool non_blocking) {
  if (to.numel() == 0) return to;
  const at::Tensor source = from.expand_as(to);
  const FakeGraph::Whole whole;
  if (!whole.recorded()) Streams::global().count_launch();
  TORCH_CHECK(!whole.recorded() || (is_on_device(to) && is_on_device(from)),
              "a copy between host and device while a graph is recorded");
  if (!is_on_device(to) || !is_on_device(from)) {
    copy_with_host(to, source, non_blocking);
  } else {
    copy_between(to, source);
    whole.uses(accesses(source, to));
    whole.add([to, source] { mirrored(to).copy_(mirrored(source)); });
  }
  return to;
}

at::Tensor copy_and_resize(const at::Tensor& from, const at::Tensor& to) {
  to.resize_(from.sizes());
  at::Tensor(to).copy_(from);
  return to;
}

void record_stream(at::Tensor& tensor, at::Stream stream) {
  fake_memory().recordStream(tensor.storage().data_ptr(), stream);
}

at::Scalar local_scalar_dense(const at::Tensor& tensor) {
  TORCH_CHECK(!FakeGraph::records(), "the host waits for the device while a graph is recorded");
  auto& streams = Streams::global();
  const int stream = stream_on(tensor.device());
  streams.uses({.name = "aten::item", .stream = stream, .accesses = accesses(tensor, {})});
  streams.synchronize(stream);
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
    if (storage.nbytes() > 0) {
      Streams::global().launch(
          {.name = "aten::resize_", .stream = stream_on(self.device()), .accesses = accesses(self, {})},
          [to = memory.get(), from = storage.data(), bytes = storage.nbytes()] {
            fake_memory().copy_data(to, from, bytes);
          });
    }
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
void draw_from_generator_of(const c10::Device& device, const c10::OperatorHandle& op, torch::jit::Stack& stack) {
  const auto& arguments = op.schema().arguments();
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    auto& argument = stack[stack.size() - arguments.size() + i];
    if (arguments[i].name() == "generator" && argument.isNone()) {
      argument = at::globalContext().defaultGenerator(device);
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

void refuse_if_not_on_cuda(const c10::OperatorHandle& op) {
  TORCH_CHECK_NOT_IMPLEMENTED(is_on_cuda(op.schema()), "Could not run '", op.operator_name(),
                              "' with arguments from the 'CUDA' backend: LibTorch for CUDA has no kernel for it");
}

// Returns the device of the tensors, of an argument "device", or else the current one.
c10::Device device_of(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  const std::string& name = op.schema().operator_name().name;
  std::optional<at::Device> device, wanted;
  for (const auto& argument : torch::jit::last(stack, op.schema().arguments().size())) {
    if (argument.isTensor()) check_place(name, argument.toTensor(), device);
    if (argument.isDevice()) wanted = argument.toDevice();
    if (!argument.isTensorList()) continue;
    for (const at::Tensor& tensor : argument.toTensorVector()) check_place(name, tensor, device);
  }
  return device ? *device : device_of(wanted);
}

// Computes now if nothing before it is pending, and otherwise in its turn. The operators of a graph are computed at
// once too, since the memory is restored after the recording.
void compute_in_turn(OperatorCall& call, const std::string& name, int stream, bool needs_results) {
  auto& streams = Streams::global();
  streams.uses({.name = name, .stream = stream, .accesses = call.accesses()});
  if (!needs_results && !streams.is_ready(stream) && call.allocate_results()) {
    streams.enqueue(stream, call.recomputation());
  } else {
    if (!streams.is_idle(stream)) streams.run_pending(stream);
    call.run();
    if (waits(name)) streams.synchronize(stream);
  }
  streams.uses({.name = name, .stream = stream, .accesses = call.result_accesses()});
}

void compute_on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const std::string& name = op.schema().operator_name().name;
  refuse_if_not_on_cuda(op);
  const c10::Device device = device_of(op, *stack);
  draw_from_generator_of(device, op, *stack);
  const c10::DeviceGuard guard(device);
  const FakeGraph::Whole whole;
  if (!whole.recorded()) Streams::global().count_launch();
  TORCH_CHECK(!whole.recorded() || !waits(name), name, ": the host waits for the device while a graph is recorded");
  OperatorCall call(op, *stack);
  compute_in_turn(call, name, stream_on(device), waits(name) || whole.recorded());
  if (whole.recorded()) {
    whole.uses(call.accesses());
    whole.uses(call.result_accesses());
    whole.add([again = call.recomputation(), owned = std::pair(call.arguments(), call.results())] { again(); });
  }
  torch::jit::drop(*stack, op.schema().arguments().size());
  for (const auto& result : call.results()) stack->push_back(result);
}

// A device converts halves to float within this operator, the CPU does not.
void log_softmax(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  c10::IValue& input = torch::jit::peek(*stack, 0, op.schema().arguments().size());
  c10::IValue& half_to_float = torch::jit::peek(*stack, 2, op.schema().arguments().size());
  if (half_to_float.toBool()) input = input.toTensor().to(at::kFloat);
  half_to_float = false;
  compute_on_cpu(op, stack);
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
  m.impl("_thnn_fused_lstm_cell", TORCH_FN(lstm_cell));
  m.impl("_thnn_fused_lstm_cell_backward_impl", TORCH_FN(lstm_cell_backward));
  register_attention(m);
  m.impl("convolution_backward", torch::CppFunction::makeFromBoxedFunction<&compute_on_cpu>());
  m.impl("_log_softmax.out", torch::CppFunction::makeFromBoxedFunction<&log_softmax>());
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
