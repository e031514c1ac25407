// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/operations.h"

#include <ATen/ops/concat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

namespace phalanx::doctor {
namespace {

// Returns a tensor filled with rank + 1, so that no result equals the initial values of a buffer.
at::Tensor own(const Communicator& world, std::int64_t elements = 3) {
  return at::full({elements}, world.rank() + 1.0);
}
at::Tensor empty(std::int64_t elements = 3) { return at::zeros({elements}); }
at::Tensor sum(const Communicator& world, std::int64_t elements = 3) {
  return at::full({elements}, world.size() * (world.size() + 1) / 2.0);
}

// Returns 3 elements from each rank, in order.
at::Tensor all(const Communicator& world) {
  std::vector<at::Tensor> parts;
  for (int rank = 0; rank < world.size(); ++rank) parts.push_back(at::full({3}, rank + 1.0));
  return at::concat(parts);
}

bool broadcast(Communicator& world) {
  const int root = world.size() - 1;
  const at::Tensor tensor = own(world);
  world.broadcast(tensor, root).wait();
  return tensor.equal(at::full({3}, root + 1.0));
}

bool reduce(Communicator& world) {
  const at::Tensor tensor = own(world);
  world.reduce(tensor, Reduction::kSum, 0).wait();
  return world.rank() != 0 || tensor.equal(sum(world));
}

bool all_reduce(Communicator& world) {
  const at::Tensor tensor = own(world);
  world.all_reduce(tensor, Reduction::kSum).wait();
  return tensor.equal(sum(world));
}

bool reduce_scatter(Communicator& world) {
  const at::Tensor output = empty();
  world.reduce_scatter(output, own(world, 3 * world.size()), Reduction::kSum).wait();
  return output.equal(sum(world));
}

bool all_gather(Communicator& world) {
  const at::Tensor output = empty(3 * world.size());
  world.all_gather(output, own(world)).wait();
  return output.equal(all(world));
}

bool gather(Communicator& world) {
  const at::Tensor output = empty(3 * world.size());
  world.gather(output, own(world), 0).wait();
  return world.rank() != 0 || output.equal(all(world));
}

bool scatter(Communicator& world) {
  const at::Tensor output = empty();
  world.scatter(output, all(world), 0).wait();
  return output.equal(own(world));
}

bool all_to_all(Communicator& world) {
  const at::Tensor output = empty(3 * world.size());
  world.all_to_all(output, own(world, 3 * world.size())).wait();
  return output.equal(all(world));
}

bool send_recv(Communicator& world) {
  const int size = world.size(), next = (world.rank() + 1) % size, previous = (world.rank() + size - 1) % size;
  const at::Tensor output = empty();
  Work sent = world.send(own(world), next);
  world.recv(output, previous).wait();
  sent.wait();
  return output.equal(at::full({3}, previous + 1.0));
}

bool barrier(Communicator& world) {
  world.barrier().wait();
  return true;
}

bool run(Communicator& world) {
  bool ran = false;
  world.run({.op = Op::kCustom}, [&] { ran = all_reduce(world); }).wait();
  return ran;
}

// Splits into one group of all ranks, in reverse order.
bool split(Communicator& world) {
  const auto group = world.split(0, -world.rank());
  return group->size() == world.size() && group->rank() == world.size() - 1 - world.rank() && all_reduce(*group);
}

bool allocate(Communicator& world) {
  const at::Tensor tensor = world.allocate({3}, at::kFloat);
  if (!tensor.equal(empty())) return false;
  tensor.copy_(own(world));
  world.all_reduce(tensor, Reduction::kSum).wait();
  return tensor.equal(sum(world));
}

}  // namespace

const std::vector<OperationCheck>& operations() {
  static const std::vector<OperationCheck> all = {
      {"broadcast", broadcast},
      {"reduce", reduce},
      {"all_reduce", all_reduce},
      {"reduce_scatter", reduce_scatter},
      {"all_gather", all_gather},
      {"gather", gather},
      {"scatter", scatter},
      {"all_to_all", all_to_all},
      {"send, recv", send_recv},
      {"barrier", barrier},
      {"run", run},
      {"split", split},
      {"allocate", allocate},
  };
  return all;
}

}  // namespace phalanx::doctor
