// SPDX-License-Identifier: Apache-2.0
#include "framework/collectives/steps.h"

#include <ATen/ops/empty.h>

#include <cstring>

#include "framework/base/parts.h"
#include "framework/comm/operations/part_layout.h"

namespace phalanx::collectives {

Work start_send(Communicator& group, const at::Tensor& tensor, int to, int tag) {
  return tensor.numel() == 0 ? Work() : group.send(tensor, to, tag);
}

Work start_recv(Communicator& group, const at::Tensor& tensor, int from, int tag) {
  return tensor.numel() == 0 ? Work() : group.recv(tensor, from, tag);
}

void send(Communicator& group, const at::Tensor& tensor, int to) { start_send(group, tensor, to).wait(); }

void recv(Communicator& group, const at::Tensor& tensor, int from) { start_recv(group, tensor, from).wait(); }

void exchange(Communicator& group, const at::Tensor& outgoing, int to, const at::Tensor& incoming, int from) {
  Work received = start_recv(group, incoming, from);
  Work sent = start_send(group, outgoing, to);
  received.wait();
  sent.wait();
}

at::Tensor scratch(const at::Tensor& tensor, std::int64_t count) { return at::empty({count}, tensor.options()); }

at::Tensor run_of(const at::Tensor& tensor, std::int64_t begin, std::int64_t count) {
  return elements_of(tensor, begin, count);
}

at::Tensor part_of(const at::Tensor& tensor, std::int64_t index, std::int64_t parts) {
  const std::int64_t begin = part_begin(tensor.numel(), parts, index);
  return elements_of(tensor, begin, part_begin(tensor.numel(), parts, index + 1) - begin);
}

std::int64_t chunks_of(const at::Tensor& tensor, std::int64_t count) {
  const std::int64_t per_chunk = kChunkBytes / static_cast<std::int64_t>(tensor.element_size());
  return std::max<std::int64_t>(1, (count + per_chunk - 1) / per_chunk);
}

void copy(const at::Tensor& to, const at::Tensor& from) {
  if (to.numel() == 0 || to.const_data_ptr() == from.const_data_ptr()) return;
  std::memcpy(to.mutable_data_ptr(), from.const_data_ptr(), to.nbytes());
}

void combine(const Reduction& op, const at::Tensor& result, const at::Tensor& next) {
  if (result.numel() == 0) return;
  op.combine(result.scalar_type(), result.mutable_data_ptr(), next.const_data_ptr(), result.numel());
}

void combine_before(const Reduction& op, const at::Tensor& previous, const at::Tensor& result) {
  combine(op, previous, result);
  copy(result, previous);
}

void finish(const Reduction& op, const at::Tensor& result, int ranks) {
  if (result.numel() > 0) op.finish(result.scalar_type(), result.mutable_data_ptr(), result.numel(), ranks);
}

void Window::add(Work work) {
  works_.push_back(std::move(work));
  if (works_.size() <= limit_) return;
  works_.front().wait();
  works_.pop_front();
}

void Window::wait_all() {
  for (Work& work : works_) work.wait();
  works_.clear();
}

}  // namespace phalanx::collectives
