// SPDX-License-Identifier: Apache-2.0
// Ring reduce-scatter, pipelined by chunks.
//
// Source: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", J. Parallel
// Distrib. Comput. 69 (2009), section on the ring: the first half of the ring all-reduce.
//
// In step s each rank sends its partial result of part (rank - 1 - s) to the right, and combines the partial result of
// part (rank - 2 - s) that it receives with its own input. In the last step this is its own part. Parts are cut into
// chunks of at most kChunkBytes, and two chunks are in flight while one is combined.
//
// Steps: P - 1. On the wire: each rank sends every part but its own once, n (P - 1) / P bytes when parts are equal,
// which is the least possible. Memory: two parts. For long tensors. Combines part r in the order r + 1, ..., P - 1, 0,
// ..., r, so only commutative reductions are supported.
#include "framework/collectives/algorithm.h"
#include "framework/collectives/steps.h"
#include "framework/comm/operations/part_layout.h"

namespace phalanx::collectives {
namespace {

class RingReduceScatter {
 public:
  RingReduceScatter(Communicator& group, const Operation& operation)
      : group_(group),
        operation_(operation),
        ranks_(group.size()),
        parts_(operation.input_counts, ranks_, operation.input.numel()) {
    std::int64_t longest = 0;
    for (int rank = 0; rank < ranks_; ++rank) longest = std::max(longest, parts_.count(rank));
    chunks_ = chunks_of(operation.input, longest);
    slot_ = (longest + chunks_ - 1) / chunks_;
    for (auto& part : held_) part = scratch(operation.input, chunks_ * slot_);
  }

  void run() {
    pipeline((ranks_ - 1) * chunks_, std::min<std::int64_t>(2, chunks_), [&](std::int64_t item) { return start(item); },
             [&](std::int64_t item) { arrived(item); });
  }

 private:
  int step(std::int64_t item) const { return static_cast<int>(item / chunks_); }
  int outgoing_part(std::int64_t item) const { return mod(group_.rank() - 1 - step(item), ranks_); }
  int incoming_part(std::int64_t item) const { return mod(group_.rank() - 2 - step(item), ranks_); }

  at::Tensor chunk(std::int64_t item, const at::Tensor& part) const { return part_of(part, item % chunks_, chunks_); }

  // The data received in step `step` lies in held_[step % 2] until it is sent in the next step. The offset of a chunk
  // does not depend on the length of its part, since the last chunk of one part may still be in flight when the first
  // chunk of the next part arrives.
  at::Tensor held(std::int64_t item, int step, int part) const {
    const std::int64_t elements = chunk(item, parts_.of(operation_.input, part)).numel();
    return run_of(held_[step % 2], item % chunks_ * slot_, elements);
  }
  at::Tensor landing(std::int64_t item) const { return held(item, step(item), incoming_part(item)); }

  std::vector<Work> start(std::int64_t item) const {
    const int part = outgoing_part(item);
    const at::Tensor outgoing =
        step(item) == 0 ? chunk(item, parts_.of(operation_.input, part)) : held(item, step(item) - 1, part);
    std::vector<Work> works;
    works.push_back(start_recv(group_, landing(item), mod(group_.rank() - 1, ranks_)));
    works.push_back(start_send(group_, outgoing, mod(group_.rank() + 1, ranks_)));
    return works;
  }

  void arrived(std::int64_t item) const {
    const at::Tensor result = landing(item);
    combine(operation_.reduction, result, chunk(item, parts_.of(operation_.input, incoming_part(item))));
    if (step(item) < ranks_ - 2) return;
    finish(operation_.reduction, result, ranks_);
    copy(chunk(item, run_of(operation_.output, 0, operation_.output.numel())), result);
  }

  Communicator& group_;
  const Operation& operation_;
  int ranks_;
  PartLayout parts_;
  std::int64_t chunks_;
  std::int64_t slot_;
  at::Tensor held_[2];
};

void ring_reduce_scatter(Communicator& group, const Operation& operation) {
  if (group.size() > 1) return RingReduceScatter(group, operation).run();
  copy(operation.output, operation.input);
  finish(operation.reduction, operation.output, 1);
}

const bool ring_reduce_scatter_registered = Algorithms::global().add(
    {.op = Op::kReduceScatter,
     .name = "ring",
     .about = "P - 1 steps, n (P - 1) / P bytes per rank, pipelined; commutative; for long tensors",
     .run = ring_reduce_scatter,
     .suits = suits_commutative});

}  // namespace
}  // namespace phalanx::collectives
