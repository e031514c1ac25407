// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/hybrid/host_communicator.h"

#include <memory>
#include <utility>

#include "framework/backends/hybrid/survivors.h"
#include "framework/comm/mesh/hierarchy.h"

namespace phalanx::hybrid {
namespace {

bool stays_with_the_world(Op op) { return op == Op::kSend || op == Op::kRecv || op == Op::kBarrier; }

}  // namespace

HostCommunicator::HostCommunicator(CommunicatorPtr inner, CommunicatorPtr host)
    : Decorator(std::move(inner)), host_(std::move(host)) {}

Work HostCommunicator::launch(Operation operation) {
  if (stays_with_the_world(operation.call.op)) return Decorator::launch(std::move(operation));
  const Call call = operation.call;
  return inner()->run(
      call, [host = host_, operation = std::move(operation)]() mutable { host->launch(std::move(operation)).wait(); });
}

CommunicatorPtr HostCommunicator::split(int color, int key) {
  auto child = inner()->split(color, key);
  auto host = split_in_order(*inner(), *host_, color, key);
  return child ? std::make_shared<HostCommunicator>(std::move(child), std::move(host)) : nullptr;
}

// link() checks that both groups have the same ranks, as for several hosts.
CommunicatorPtr HostCommunicator::do_shrink() {
  return shrink_together(
      {.all = inner(), .host = host_}, [] {},
      [](const Survivors& left) -> CommunicatorPtr {
        return std::make_shared<HostCommunicator>(left.all, link(kHostLevel, left.all, left.host).intra);
      });
}

std::string HostCommunicator::why_no_shrink() const { return why_not_together(*inner(), *host_); }

at::Tensor HostCommunicator::do_allocate(const Allocation& allocation) {
  at::Tensor memory;
  inner()->run(allocation.call, [&] { memory = host_->do_allocate(allocation); }).wait();
  return memory;
}

// split() also creates the host's part of a child. A child that was created in another way has no such part.
CommunicatorPtr HostCommunicator::wrap(CommunicatorPtr child) { return child; }

CommunicatorPtr split_in_order(Communicator& world, Communicator& host, int color, int key) {
  CommunicatorPtr child;
  world.run({.op = Op::kSplit}, [&] { child = host.split(color, key); }).wait();
  return child;
}

}  // namespace phalanx::hybrid
