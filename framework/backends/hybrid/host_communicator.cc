#include "framework/backends/hybrid/host_communicator.h"

#include <memory>
#include <utility>
#include <vector>

#include "framework/comm/arguments.h"
#include "framework/comm/shared_memory.h"

namespace phalanx::hybrid {

using at::Tensor;

HostCommunicator::HostCommunicator(CommunicatorPtr inner, CommunicatorPtr host)
    : Decorator(std::move(inner)), host_(std::move(host)) {}

Work HostCommunicator::run_there(const Call& call, std::function<Work(Communicator& host)> launch) {
  return inner()->run(call, [host = host_, launch = std::move(launch)] { launch(*host).wait(); });
}

Work HostCommunicator::broadcast(Tensor tensor, int root) {
  return run_there(check_broadcast(*this, tensor, root),
                   [=](Communicator& host) { return host.broadcast(tensor, root); });
}

Work HostCommunicator::reduce(Tensor tensor, Reduction op, int root) {
  return run_there(check_reduce(*this, tensor, op, root),
                   [=](Communicator& host) { return host.reduce(tensor, op, root); });
}

Work HostCommunicator::all_reduce(Tensor tensor, Reduction op) {
  return run_there(check_all_reduce(tensor, op), [=](Communicator& host) { return host.all_reduce(tensor, op); });
}

Work HostCommunicator::reduce_scatter(Tensor output, Tensor input, Reduction op, Counts counts) {
  return run_there(
      check_reduce_scatter(*this, output, input, op, counts),
      [=, counts = counts.vec()](Communicator& host) { return host.reduce_scatter(output, input, op, counts); });
}

Work HostCommunicator::all_gather(Tensor output, Tensor input, Counts counts) {
  return run_there(check_all_gather(*this, output, input, counts),
                   [=, counts = counts.vec()](Communicator& host) { return host.all_gather(output, input, counts); });
}

Work HostCommunicator::gather(Tensor output, Tensor input, int root, Counts counts) {
  return run_there(check_gather(*this, output, input, root, counts),
                   [=, counts = counts.vec()](Communicator& host) { return host.gather(output, input, root, counts); });
}

Work HostCommunicator::scatter(Tensor output, Tensor input, int root, Counts counts) {
  return run_there(check_scatter(*this, output, input, root, counts), [=, counts = counts.vec()](Communicator& host) {
    return host.scatter(output, input, root, counts);
  });
}

Work HostCommunicator::all_to_all(Tensor output, Tensor input, Counts output_counts, Counts input_counts) {
  return run_there(check_all_to_all(*this, output, input, output_counts, input_counts),
                   [=, output_counts = output_counts.vec(), input_counts = input_counts.vec()](Communicator& host) {
                     return host.all_to_all(output, input, output_counts, input_counts);
                   });
}

CommunicatorPtr HostCommunicator::split(int color, int key) {
  auto child = inner()->split(color, key);
  auto host = split_in_order(*inner(), *host_, color, key);
  return child ? std::make_shared<HostCommunicator>(std::move(child), std::move(host)) : nullptr;
}

Tensor HostCommunicator::allocate(at::IntArrayRef sizes, at::TensorOptions options) {
  Tensor memory;
  inner()->run({.op = Op::kAllocate}, [&] { memory = host_->allocate(sizes, options); }).wait();
  return memory;
}

Tensor HostCommunicator::allocate_shared(at::IntArrayRef sizes, at::TensorOptions options) {
  refuse_shared_memory(*this);
  Tensor memory;
  inner()->run({.op = Op::kAllocate}, [&] { memory = host_->allocate_shared(sizes, options); }).wait();
  return memory;
}

// split() knows the host's part of a child. Of one that somebody else made, there is none.
CommunicatorPtr HostCommunicator::wrap(CommunicatorPtr child) { return child; }

CommunicatorPtr split_in_order(Communicator& world, Communicator& host, int color, int key) {
  CommunicatorPtr child;
  world.run({.op = Op::kSplit}, [&] { child = host.split(color, key); }).wait();
  return child;
}

}  // namespace phalanx::hybrid
