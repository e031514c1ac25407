// Relay broadcast: each rank hands the whole tensor on to the next one. Steps: P - 1. On the wire: n bytes per rank.
#include "framework/collectives/algorithm.h"

namespace {

using namespace phalanx;

constexpr int kTag = kMaxTag + 1;  // tags above kMaxTag are for algorithms

void relay(Communicator& group, const Operation& operation) {
  const int size = group.size();
  const int place = (group.rank() - operation.root() + size) % size;  // root is first
  const int before = (group.rank() + size - 1) % size, behind = (group.rank() + 1) % size;
  if (place > 0) group.recv(operation.output, before, kTag).wait();
  if (place < size - 1) group.send(operation.output, behind, kTag).wait();
}

const bool relay_registered = Algorithms::global().add(
    {.op = Op::kBroadcast, .name = "relay", .about = "P - 1 steps, n bytes per rank", .run = relay});

}  // namespace
