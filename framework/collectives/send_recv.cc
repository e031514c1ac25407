// SPDX-License-Identifier: Apache-2.0
#include "framework/collectives/send_recv.h"

#include <ATen/MemoryOverlap.h>

#include <stdexcept>

#include "framework/collectives/steps.h"
#include "framework/comm/operations/abandonable.h"
#include "framework/comm/operations/arguments.h"
#include "framework/comm/operations/wait_both.h"

namespace phalanx {
namespace {

// Both halves are messages, so destroying them abandons them.
class Exchange final : public Work::State, public Abandonable {
 public:
  Exchange(Work received, Work sent) : received_(std::move(received)), sent_(std::move(sent)) {}

  // After a message of another size, the group goes on.
  void wait() override { wait_both(received_, sent_); }
  void synchronize() override {
    received_.synchronize();
    sent_.synchronize();
  }
  bool done() const override { return received_.done() && sent_.done(); }
  void abandon() override {}

 private:
  Work received_;
  Work sent_;
};

// Checks both halves before either is started, because a half that waits for a peer could not be cancelled.
void check(const Communicator& group, const at::Tensor& input, const at::Tensor& output, int to, int from, int tag) {
  checked_recv(group, input, from, tag);
  checked_send(group, output, to, tag);
}

Work start(Communicator& group, at::Tensor input, at::Tensor output, int to, int from, int tag) {
  Work received = group.recv(std::move(input), from, tag);
  Work sent = group.send(std::move(output), to, tag);
  return Work(std::make_shared<Exchange>(std::move(received), std::move(sent)));
}

}  // namespace

Work send_recv(Communicator& group, at::Tensor input, at::Tensor output, int to, int from, int tag) {
  check(group, input, output, to, from, tag);
  const auto overlap = at::get_overlap_status(input, output);
  if (overlap == at::MemOverlapStatus::Partial || overlap == at::MemOverlapStatus::Full) {
    throw std::invalid_argument("send_recv: input and output overlap; leave out one of them to replace the other");
  }
  return start(group, std::move(input), std::move(output), to, from, tag);
}

Work send_recv(Communicator& group, at::Tensor tensor, int to, int from, int tag) {
  check(group, tensor, tensor, to, from, tag);
  const at::Tensor copy = collectives::scratch(tensor, tensor.numel());
  collectives::copy(copy, tensor);
  return start(group, std::move(tensor), copy, to, from, tag);
}

}  // namespace phalanx
