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
  Traffic(const Turn& turn, const at::Tensor& tensor, const std::vector<std::int64_t>& counts)
      : turn_(turn),
        item_(tensor.element_size()),
        parts_(counts, turn.context->size, tensor.numel()),
        data_(static_cast<std::byte*>(tensor.data_ptr())),
        buffer_(turn.context->createUnboundBuffer(data_, tensor.nbytes())) {}

  std::byte* data(int rank) const { return data_ + parts_.begin(rank) * item_; }
  std::size_t bytes(int rank) const { return parts_.count(rank) * item_; }

  // An empty part sends no message.
  void send(int rank) {
    if (bytes(rank) == 0) return;
    buffer_->send(rank, turn_.slot(bytes(rank)), data(rank) - data_, bytes(rank));
    ++sends_;
  }
  void recv(int rank) {
    if (bytes(rank) == 0) return;
    buffer_->recv(rank, turn_.slot(bytes(rank)), data(rank) - data_, bytes(rank));
    ++receives_;
  }
  void wait() {
    for (; receives_ > 0; --receives_) buffer_->waitRecv(turn_.timeout);
    for (; sends_ > 0; --sends_) buffer_->waitSend(turn_.timeout);
  }

 private:
  const Turn& turn_;
  std::size_t item_;
  PartLayout parts_;
  std::byte* data_;
  BufferPtr buffer_;
  int sends_ = 0, receives_ = 0;
};

// Sends or receives a tensor that is a single part, to or from the root.
void move_to(const Turn& turn, int root, const at::Tensor& tensor, bool sends) {
  const std::size_t bytes = tensor.nbytes();
  if (bytes == 0) return;
  const auto buffer = turn.context->createUnboundBuffer(tensor.data_ptr(), bytes);
  if (sends) {
    buffer->send(root, turn.slot(bytes), 0, bytes);
    buffer->waitSend(turn.timeout);
  } else {
    buffer->recv(root, turn.slot(bytes), 0, bytes);
    buffer->waitRecv(turn.timeout);
  }
}

void copy_own(void* to, const void* from, std::size_t bytes) {
  if (to != from && bytes > 0) std::memcpy(to, from, bytes);
}

}  // namespace

void gather(const Turn& turn, const Operation& operation) {
  const int own = turn.context->rank;
  if (own != operation.root()) return move_to(turn, operation.root(), operation.input, true);
  Traffic parts(turn, operation.output, operation.input_counts);
  for (int rank = 0; rank < turn.context->size; ++rank) {
    if (rank != own) parts.recv(rank);
  }
  copy_own(parts.data(own), operation.input.data_ptr(), parts.bytes(own));
  parts.wait();
}

void scatter(const Turn& turn, const Operation& operation) {
  const int own = turn.context->rank;
  if (own != operation.root()) return move_to(turn, operation.root(), operation.output, false);
  Traffic parts(turn, operation.input, operation.input_counts);
  for (int rank = 0; rank < turn.context->size; ++rank) {
    if (rank != own) parts.send(rank);
  }
  copy_own(operation.output.data_ptr(), parts.data(own), parts.bytes(own));
  parts.wait();
}

// Each rank begins with its right neighbor, so that not all ranks send to the same one.
void all_to_all(const Turn& turn, const Operation& operation) {
  const int own = turn.context->rank, size = turn.context->size;
  Traffic sources(turn, operation.output, operation.output_counts);
  Traffic targets(turn, operation.input, operation.input_counts);
  for (int step = 1; step < size; ++step) sources.recv((own + size - step) % size);
  for (int step = 1; step < size; ++step) targets.send((own + step) % size);
  copy_own(sources.data(own), targets.data(own), sources.bytes(own));
  sources.wait();
  targets.wait();
}

}  // namespace phalanx::gloo
