// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/gloo/collectives.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <gloo/allgatherv.h>
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/reduce.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "framework/comm/operations/part_layout.h"

namespace phalanx::gloo {
namespace {

std::size_t elements_in(const at::Tensor& tensor) { return static_cast<std::size_t>(tensor.numel()); }

// Gloo takes elements by type, but needs only the size of the type.
template <class Use>
void with_pointer(const at::Tensor& tensor, const Use& use) {
  void* data = tensor.data_ptr();
  switch (tensor.element_size()) {
    case 1:
      return use(static_cast<std::uint8_t*>(data));
    case 2:
      return use(static_cast<std::uint16_t*>(data));
    case 4:
      return use(static_cast<std::uint32_t*>(data));
    default:
      return use(static_cast<std::uint64_t*>(data));
  }
}

auto combiner(const at::Tensor& tensor, const Reduction& op) {
  return [op, dtype = tensor.scalar_type()](void* result, const void* first, const void* second, std::size_t count) {
    if (result != first) std::memcpy(result, first, count * c10::elementSize(dtype));
    op.combine(dtype, result, second, static_cast<std::int64_t>(count));
  };
}

void finish(const at::Tensor& tensor, const Reduction& op, int ranks) {
  op.finish(tensor.scalar_type(), tensor.data_ptr(), tensor.numel(), ranks);
}

}  // namespace

bool reduces_at_once(std::size_t bytes, int ranks) {
  const auto others = static_cast<std::size_t>(ranks - 1);
  return bytes * others * others <= kAtOnceBytes;
}

void broadcast(const CollectiveCall& collective, const Operation& operation) {
  ::gloo::BroadcastOptions options(collective.context);
  with_pointer(operation.output, [&](auto* data) { options.setOutput(data, elements_in(operation.output)); });
  options.setRoot(operation.root());
  options.setTag(collective.tag());
  options.setTimeout(collective.timeout);
  ::gloo::broadcast(options);
}

void all_reduce(const CollectiveCall& collective, const Operation& operation) {
  const at::Tensor& tensor = operation.output;
  ::gloo::AllreduceOptions options(collective.context);
  with_pointer(tensor, [&](auto* data) { options.setOutput(data, elements_in(tensor)); });
  options.setAlgorithm(tensor.nbytes() <= kBcubeBytes ? ::gloo::AllreduceOptions::Algorithm::BCUBE
                                                      : ::gloo::AllreduceOptions::Algorithm::RING);
  options.setReduceFunction(combiner(tensor, operation.reduction));
  options.setTag(collective.tag());
  options.setTimeout(collective.timeout);
  ::gloo::allreduce(options);
  finish(tensor, operation.reduction, collective.context->size);
}

// Gets the tensors of all other ranks, and combines all of them in rank order. Each rank begins with its right
// neighbor, so that not all of them send to the same one.
void all_reduce_at_once(const CollectiveCall& collective, const Operation& operation) {
  const at::Tensor& tensor = operation.output;
  const Reduction& op = operation.reduction;
  const int own = collective.context->rank, size = collective.context->size;
  const std::size_t bytes = tensor.nbytes();
  if (bytes == 0 || size == 1) return finish(tensor, op, size);
  const at::Tensor all = at::empty({size, tensor.numel()}, tensor.options());
  auto* const parts = static_cast<std::byte*>(all.data_ptr());
  const auto part = [&](int rank) { return static_cast<std::size_t>(rank) * bytes; };
  std::memcpy(parts + part(own), tensor.data_ptr(), bytes);
  const auto sources = collective.context->createUnboundBuffer(parts, all.nbytes());
  const auto target = collective.context->createUnboundBuffer(tensor.data_ptr(), bytes);
  for (int step = 1; step < size; ++step) {
    const int from = (own + size - step) % size;
    sources->recv(from, collective.slot(bytes), part(from), bytes);
  }
  for (int step = 1; step < size; ++step) target->send((own + step) % size, collective.slot(bytes), 0, bytes);
  for (int step = 1; step < size; ++step) sources->waitRecv(collective.timeout);
  for (int step = 1; step < size; ++step) target->waitSend(collective.timeout);
  std::memcpy(tensor.data_ptr(), parts, bytes);
  for (int rank = 1; rank < size; ++rank) {
    op.combine(tensor.scalar_type(), tensor.data_ptr(), parts + part(rank), tensor.numel());
  }
  finish(tensor, op, size);
}

// Gloo writes to the output on all ranks.
void reduce(const CollectiveCall& collective, const Operation& operation) {
  const bool is_root = collective.context->rank == operation.root();
  const at::Tensor output = is_root ? operation.output : at::empty_like(operation.output);
  ::gloo::ReduceOptions options(collective.context);
  with_pointer(operation.output, [&](auto* data) { options.setInput(data, elements_in(output)); });
  with_pointer(output, [&](auto* data) { options.setOutput(data, elements_in(output)); });
  options.setRoot(operation.root());
  options.setReduceFunction(combiner(output, operation.reduction));
  options.setTag(collective.tag());
  options.setTimeout(collective.timeout);
  ::gloo::reduce(options);
  if (is_root) finish(output, operation.reduction, collective.context->size);
}

void all_gather(const CollectiveCall& collective, const Operation& operation) {
  const PartLayout parts(operation.input_counts, collective.context->size, operation.output.numel());
  std::vector<std::size_t> counts;
  for (int rank = 0; rank < parts.ranks(); ++rank) counts.push_back(static_cast<std::size_t>(parts.count(rank)));
  const at::Tensor own = parts.of(operation.output, collective.context->rank);
  ::gloo::AllgathervOptions options(collective.context);
  with_pointer(operation.output, [&](auto* data) { options.setOutput(data, std::move(counts)); });
  if (own.data_ptr() != operation.input.data_ptr()) {
    with_pointer(operation.input, [&](auto* data) { options.setInput(data, elements_in(operation.input)); });
  }
  options.setTag(collective.tag());
  options.setTimeout(collective.timeout);
  ::gloo::allgatherv(options);
}

void barrier(const CollectiveCall& collective) {
  ::gloo::BarrierOptions options(collective.context);
  options.setTag(collective.tag());
  options.setTimeout(collective.timeout);
  ::gloo::barrier(options);
}

}  // namespace phalanx::gloo
