// SPDX-License-Identifier: Apache-2.0
// Ring all-reduce: reduce-scatter and all-gather around a ring, pipelined by chunks.
//
// Source: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", J. Parallel
// Distrib. Comput. 69 (2009), section on the ring.
//
// The tensor is cut into P nearly equal blocks. In step s each rank sends block (rank - s) to the right and receives
// block (rank - s - 1) from the left. In the first P - 1 steps it combines the blocks that it receives; then it has the
// result of block (rank + 1). In P - 1 more steps the results go around the ring. Blocks are cut into chunks of at most
// kChunkBytes, and two chunks are in flight while one is combined.
//
// Steps: 2 (P - 1). On the wire: each rank sends all blocks twice, except for two that it sends once, 2 n (P - 1) / P
// bytes, which is the least possible. For long tensors. Combines block b in the order b + 1, ..., P - 1, 0, ..., b, so
// only commutative reductions are supported.
#include "framework/collectives/algorithm.h"
#include "framework/collectives/steps.h"

namespace phalanx::collectives {
namespace {

class RingAllReduce {
 public:
  RingAllReduce(Communicator& group, const at::Tensor& tensor, const Reduction& op)
      : group_(group), tensor_(tensor), op_(op), ranks_(group.size()) {
    const at::Tensor longest = part_of(tensor, 0, ranks_);
    chunks_ = chunks_of(tensor, longest.numel());
    for (auto& chunk : received_) chunk = scratch(tensor, part_of(longest, 0, chunks_).numel());
  }

  void run() {
    pipeline(
        2 * (ranks_ - 1) * chunks_, std::min<std::int64_t>(2, chunks_), [&](std::int64_t item) { return start(item); },
        [&](std::int64_t item) { arrived(item); });
  }

 private:
  int step(std::int64_t item) const { return static_cast<int>(item / chunks_); }
  bool combines(std::int64_t item) const { return step(item) < ranks_ - 1; }

  at::Tensor chunk(std::int64_t item, int block) const {
    return part_of(part_of(tensor_, mod(block, ranks_), ranks_), item % chunks_, chunks_);
  }
  at::Tensor incoming(std::int64_t item) const { return chunk(item, group_.rank() - step(item) - 1); }

  at::Tensor landing(std::int64_t item) const {
    const at::Tensor target = incoming(item);
    return combines(item) ? run_of(received_[item % 2], 0, target.numel()) : target;
  }

  std::vector<Work> start(std::int64_t item) const {
    std::vector<Work> works;
    works.push_back(start_recv(group_, landing(item), mod(group_.rank() - 1, ranks_)));
    works.push_back(start_send(group_, chunk(item, group_.rank() - step(item)), mod(group_.rank() + 1, ranks_)));
    return works;
  }

  void arrived(std::int64_t item) const {
    if (!combines(item)) return;
    combine(op_, incoming(item), landing(item));
    if (step(item) == ranks_ - 2) finish(op_, incoming(item), ranks_);
  }

  Communicator& group_;
  const at::Tensor& tensor_;
  const Reduction& op_;
  int ranks_;
  std::int64_t chunks_;
  at::Tensor received_[2];
};

void ring_all_reduce(Communicator& group, const Operation& operation) {
  if (group.size() == 1) return finish(operation.reduction, operation.output, 1);
  RingAllReduce(group, operation.output, operation.reduction).run();
}

const bool ring_all_reduce_registered = Algorithms::global().add(
    {.op = Op::kAllReduce,
     .name = "ring",
     .about = "2 (P - 1) steps, 2 n (P - 1) / P bytes per rank, pipelined; commutative; for long tensors",
     .run = ring_all_reduce,
     .suits = suits_commutative});

}  // namespace
}  // namespace phalanx::collectives
