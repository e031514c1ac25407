// SPDX-License-Identifier: Apache-2.0
// Collectives in which every part has one sender and one receiver.
#include <cstddef>
#include <cstring>
#include <memory>
#include <vector>

#include "framework/backends/gloo/collectives.h"
#include "framework/comm/operations/part_layout.h"

namespace phalanx::gloo {
namespace {

using BufferPtr = std::unique_ptr<::gloo::transport::UnboundBuffer>;

// The parts of a tensor by rank, while they are sent or received.
class Traffic {
 public:
  Traffic(const CollectiveCall& collective, const at::Tensor& tensor, const std::vector<std::int64_t>& counts)
      : collective_(collective),
        item_(tensor.element_size()),
        parts_(counts, collective.context->size, tensor.numel()),
        data_(static_cast<std::byte*>(tensor.data_ptr())),
        buffer_(collective.context->createUnboundBuffer(data_, tensor.nbytes())) {}

  std::byte* data(int rank) const { return data_ + parts_.begin(rank) * item_; }
  std::size_t bytes(int rank) const { return parts_.count(rank) * item_; }

  // An empty part sends no message.
  void send(int rank) {
    if (bytes(rank) == 0) return;
    buffer_->send(rank, collective_.slot(bytes(rank)), data(rank) - data_, bytes(rank));
    ++sends_;
  }
  void recv(int rank) {
    if (bytes(rank) == 0) return;
    buffer_->recv(rank, collective_.slot(bytes(rank)), data(rank) - data_, bytes(rank));
    ++receives_;
  }
  void wait() {
    for (; receives_ > 0; --receives_) buffer_->waitRecv(collective_.timeout);
    for (; sends_ > 0; --sends_) buffer_->waitSend(collective_.timeout);
  }

 private:
  const CollectiveCall& collective_;
  std::size_t item_;
  PartLayout parts_;
  std::byte* data_;
  BufferPtr buffer_;
  int sends_ = 0, receives_ = 0;
};

// Sends or receives a tensor that is a single part, to or from the root.
void move_to(const CollectiveCall& collective, int root, const at::Tensor& tensor, bool sends) {
  const std::size_t bytes = tensor.nbytes();
  if (bytes == 0) return;
  const auto buffer = collective.context->createUnboundBuffer(tensor.data_ptr(), bytes);
  if (sends) {
    buffer->send(root, collective.slot(bytes), 0, bytes);
    buffer->waitSend(collective.timeout);
  } else {
    buffer->recv(root, collective.slot(bytes), 0, bytes);
    buffer->waitRecv(collective.timeout);
  }
}

void copy_own(void* to, const void* from, std::size_t bytes) {
  if (to != from && bytes > 0) std::memcpy(to, from, bytes);
}

}  // namespace

void gather(const CollectiveCall& collective, const Operation& operation) {
  const int own = collective.context->rank;
  if (own != operation.root()) return move_to(collective, operation.root(), operation.input, true);
  Traffic parts(collective, operation.output, operation.input_counts);
  for (int rank = 0; rank < collective.context->size; ++rank) {
    if (rank != own) parts.recv(rank);
  }
  copy_own(parts.data(own), operation.input.data_ptr(), parts.bytes(own));
  parts.wait();
}

void scatter(const CollectiveCall& collective, const Operation& operation) {
  const int own = collective.context->rank;
  if (own != operation.root()) return move_to(collective, operation.root(), operation.output, false);
  Traffic parts(collective, operation.input, operation.input_counts);
  for (int rank = 0; rank < collective.context->size; ++rank) {
    if (rank != own) parts.send(rank);
  }
  copy_own(operation.output.data_ptr(), parts.data(own), parts.bytes(own));
  parts.wait();
}

// Each rank begins with its right neighbor, so that not all ranks send to the same one.
void all_to_all(const CollectiveCall& collective, const Operation& operation) {
  const int own = collective.context->rank, size = collective.context->size;
  Traffic sources(collective, operation.output, operation.output_counts);
  Traffic targets(collective, operation.input, operation.input_counts);
  for (int step = 1; step < size; ++step) sources.recv((own + size - step) % size);
  for (int step = 1; step < size; ++step) targets.send((own + step) % size);
  copy_own(sources.data(own), targets.data(own), sources.bytes(own));
  sources.wait();
  targets.wait();
}

}  // namespace phalanx::gloo
