// SPDX-License-Identifier: Apache-2.0
// Direct reduce-scatter: each rank sends every other rank that rank's part, and combines the contributions to its own
// part in rank order.
//
// Steps: 1, of P - 1 messages. On the wire: each rank sends every part but its own once, n (P - 1) / P bytes when parts
// are equal, which is the least possible. Memory: three parts. For few ranks.
#include "framework/collectives/direct.h"
#include "framework/collectives/steps.h"
#include "framework/comm/operations/part_layout.h"

namespace phalanx {

using namespace collectives;

void direct_reduce_scatter(Communicator& group, const Operation& operation) {
  const int own = group.rank(), ranks = group.size();
  const PartLayout parts(operation.input_counts, ranks, operation.input.numel());
  std::vector<Work> sent;
  for (int step = 1; step < ranks; ++step) {
    const int to = mod(own + step, ranks);
    sent.push_back(start_send(group, parts.of(operation.input, to), to));
  }

  // The output may alias this rank's part of the input, which is needed later than the first part: combine in scratch
  // memory.
  const at::Tensor total = scratch(operation.input, parts.count(own));
  const at::Tensor received[2] = {scratch(total, total.numel()), scratch(total, total.numel())};
  const auto start = [&](std::int64_t rank) {
    std::vector<Work> works;
    if (rank != own) works.push_back(start_recv(group, received[rank % 2], static_cast<int>(rank)));
    return works;
  };
  const auto arrived = [&](std::int64_t rank) {
    const at::Tensor next = rank == own ? parts.of(operation.input, own) : received[rank % 2];
    if (rank == 0) {
      copy(total, next);
    } else {
      combine(operation.reduction, total, next);
    }
  };
  pipeline(ranks, 2, start, arrived);
  wait_all(sent);
  finish(operation.reduction, total, ranks);
  copy(operation.output, total);
}

namespace {

const bool direct_reduce_scatter_registered = Algorithms::global().add(
    {.op = Op::kReduceScatter,
     .name = "direct",
     .about = "1 step of P - 1 messages, n (P - 1) / P bytes per rank; in rank order; for few ranks",
     .run = direct_reduce_scatter});

}  // namespace
}  // namespace phalanx
