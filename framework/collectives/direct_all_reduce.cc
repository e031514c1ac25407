// SPDX-License-Identifier: Apache-2.0
// Direct all-reduce: a direct reduce-scatter and a direct all-gather of P nearly equal parts.
//
// Steps: 2, of P - 1 messages each. On the wire: 2 n (P - 1) / P bytes per rank, which is the least possible. Memory:
// three parts. Combines in rank order, so it is the reference for the other algorithms. For few ranks.
#include "framework/base/parts.h"
#include "framework/collectives/direct.h"
#include "framework/comm/operations/part_layout.h"

namespace phalanx {
namespace {

void direct_all_reduce(Communicator& group, const Operation& operation) {
  const auto counts = nearly_equal_counts(operation.output.numel(), group.size());
  const PartLayout parts(counts, group.size(), operation.output.numel());
  const at::Tensor own = parts.of(operation.output, group.rank());
  direct_reduce_scatter(
      group, {.output = own, .input = operation.output, .reduction = operation.reduction, .input_counts = counts});
  direct_all_gather(group, {.output = operation.output, .input = own, .input_counts = counts});
}

const bool direct_all_reduce_registered = Algorithms::global().add(
    {.op = Op::kAllReduce,
     .name = "direct",
     .about = "2 steps of P - 1 messages, 2 n (P - 1) / P bytes per rank; in rank order; for few ranks",
     .run = direct_all_reduce});

}  // namespace
}  // namespace phalanx
