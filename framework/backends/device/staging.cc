// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/device/staging.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "framework/backends/device/launch_point.h"
#include "framework/comm/operations/copied_result.h"
#include "framework/comm/operations/divide_by_ranks.h"
#include "framework/comm/operations/part_layout.h"

namespace phalanx {
namespace {

bool has_streams(const at::Device& device) { return !device.is_cpu(); }

void mark(c10::Event& event, const at::Device& device) {
  if (has_streams(device)) event.record(current_stream(device));
}

// A copy of a tensor's elements in host memory.
class Staged {
 public:
  Staged(const at::Tensor& tensor, bool in)
      : device_(tensor), host_(tensor.defined() ? host_memory_for(tensor) : tensor) {
    if (in && tensor.defined()) host_.copy_(device_.view({-1}));
  }
  const at::Tensor& host() const { return host_; }
  void out() const {
    if (device_.defined()) device_.view({-1}).copy_(host_);
  }

 private:
  at::Tensor device_, host_;
};

// Performs operations with a single tensor whose elements are independent of each other.
void do_in_chunks(Communicator& host, const Operation& operation, std::int64_t chunk_bytes) {
  const at::Tensor& tensor = operation.output;
  const at::Device device = tensor.device();
  const bool has_root = operation.call.op != Op::kAllReduce, is_root = host.rank() == operation.root();
  const bool reads = operation.call.op != Op::kBroadcast || is_root;
  const bool writes = !has_root || (operation.call.op == Op::kBroadcast ? !is_root : is_root);
  const at::Tensor flat = tensor.view({-1}), staged = host_memory_for(tensor);
  const std::int64_t step = std::max<std::int64_t>(1, chunk_bytes / tensor.element_size());

  // Starts all copies to the host before the first chunk is combined.
  std::vector<c10::Event> arrived;
  for (std::int64_t begin = 0; begin < flat.numel() && reads; begin += step) {
    const std::int64_t count = std::min(step, flat.numel() - begin);
    staged.narrow(0, begin, count).copy_(flat.narrow(0, begin, count), /*non_blocking=*/true);
    mark(arrived.emplace_back(device.type()), device);
  }
  std::size_t chunk = 0;
  std::int64_t begin = 0;
  do {  // runs even for zero elements, since the ranks must still meet
    const std::int64_t count = std::min(step, flat.numel() - begin);
    if (reads && has_streams(device) && chunk < arrived.size()) arrived[chunk].synchronize();
    Operation part = operation;
    part.output = staged.narrow(0, begin, count);
    part.call.elements = count;
    host.launch(std::move(part)).wait();
    if (writes) flat.narrow(0, begin, count).copy_(staged.narrow(0, begin, count), /*non_blocking=*/true);
    begin += step;
    ++chunk;
  } while (begin < flat.numel());
}

void do_whole(Communicator& host, const Operation& operation) {
  const bool is_root = host.rank() == operation.root();
  const bool reads = operation.call.op != Op::kScatter || is_root;
  const bool writes = operation.call.op != Op::kGather || is_root;
  const Staged input(reads ? operation.input : at::Tensor(), true),
      output(writes ? operation.output : at::Tensor(), false);
  Operation on_host = operation;
  on_host.input = input.host();
  on_host.output = output.host();
  host.launch(std::move(on_host)).wait();
  output.out();
}

}  // namespace

at::Tensor host_memory_for(const at::Tensor& tensor) {
  const auto options = at::TensorOptions().dtype(tensor.scalar_type()).pinned_memory(has_streams(tensor.device()));
  return at::empty({tensor.numel()}, options);
}

void synchronize_stream(const at::Device& device) {
  if (has_streams(device)) c10::impl::VirtualGuardImpl(device.type()).synchronizeStream(current_stream(device));
}

void run_staged(Communicator& host, const Operation& operation, std::int64_t chunk_bytes) {
  const at::NoGradGuard no_grad;
  switch (operation.call.op) {
    case Op::kBroadcast:
    case Op::kReduce:
    case Op::kAllReduce:
      do_in_chunks(host, operation, chunk_bytes);
      break;
    default:
      do_whole(host, operation);
  }
  synchronize_stream((operation.output.defined() ? operation.output : operation.input).device());
}

void run_direct(Communicator& host, Operation operation) {
  const at::NoGradGuard no_grad;
  at::Tensor result = operation.output;
  const bool mean = operation.reduction.kind() == Reduction::kMean;
  const bool gets_result = operation.call.op != Op::kReduce || host.rank() == operation.root();
  if (mean) operation.reduction = Reduction::kSum;
  synchronize_stream(result.device());
  host.launch(std::move(operation)).wait();
  if (!mean || !gets_result) return;
  divide_by_ranks(result, host.size());
  synchronize_stream(result.device());
}

Work send_staged(Communicator& host, Operation operation) {
  const at::NoGradGuard no_grad;
  const at::Tensor staged = host_memory_for(operation.output);
  staged.copy_(operation.output.view({-1}));
  operation.output = staged;
  return host.launch(std::move(operation));
}

Work recv_staged(Communicator& host, Operation operation) {
  const at::Tensor device = std::move(operation.output);
  operation.output = host_memory_for(device);
  const at::Tensor staged = operation.output;
  return with_result_copied(host.launch(std::move(operation)), staged, device);
}

}  // namespace phalanx
