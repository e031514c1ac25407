// SPDX-License-Identifier: Apache-2.0
// Direct reduce: each rank sends its tensor to the root, which combines them in the order of ranks.
//
// The tensor is cut into chunks of at most kChunkBytes, so that the root needs little memory and combines one chunk
// while it receives the next.
//
// Steps: P - 1 messages to the root for each chunk. On the wire: n bytes from each rank but the root. Memory: 3 chunks.
// For few ranks.
#include "framework/collectives/direct.h"
#include "framework/collectives/steps.h"

namespace phalanx {

using namespace collectives;

namespace {

void collect(Communicator& group, const Operation& operation, std::int64_t chunks) {
  const int ranks = group.size();
  const std::int64_t longest = part_of(operation.output, 0, chunks).numel();
  const at::Tensor total = scratch(operation.output, longest);
  const at::Tensor received[2] = {scratch(operation.output, longest), scratch(operation.output, longest)};
  const auto own = [&](std::int64_t item) { return part_of(operation.output, item / ranks, chunks); };
  const auto landing = [&](std::int64_t item) { return run_of(received[item % 2], 0, own(item).numel()); };
  const auto start = [&](std::int64_t item) {
    const int rank = static_cast<int>(item % ranks);
    std::vector<Work> works;
    if (rank != operation.root()) works.push_back(start_recv(group, landing(item), rank));
    return works;
  };
  const auto arrived = [&](std::int64_t item) {
    const int rank = static_cast<int>(item % ranks);
    const at::Tensor result = run_of(total, 0, own(item).numel());
    const at::Tensor next = rank == operation.root() ? own(item) : landing(item);
    if (rank == 0) {
      copy(result, next);
    } else {
      combine(operation.reduction, result, next);
    }
    if (rank < ranks - 1) return;
    finish(operation.reduction, result, ranks);
    copy(own(item), result);
  };
  pipeline(chunks * ranks, 2, start, arrived);
}

void direct_reduce(Communicator& group, const Operation& operation) {
  const std::int64_t chunks = chunks_of(operation.output, operation.output.numel());
  if (group.rank() == operation.root()) return collect(group, operation, chunks);
  Window sent(2);
  for (std::int64_t i = 0; i < chunks; ++i) {
    sent.add(start_send(group, part_of(operation.output, i, chunks), operation.root()));
  }
  sent.wait_all();
}

const bool direct_reduce_registered =
    Algorithms::global().add({.op = Op::kReduce,
                              .name = "direct",
                              .about = "P - 1 messages to the root, n bytes per rank; in rank order; for few ranks",
                              .run = direct_reduce});

}  // namespace
}  // namespace phalanx
