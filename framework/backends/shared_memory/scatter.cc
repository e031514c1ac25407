// SPDX-License-Identifier: Apache-2.0
// scatter and reduce_scatter: an input holds a part for every rank.
#include "framework/backends/shared_memory/bulk_copy.h"
#include "framework/backends/shared_memory/collectives.h"
#include "framework/backends/shared_memory/copy_sources.h"
#include "framework/backends/shared_memory/part_flow.h"
#include "framework/backends/shared_memory/reduce_run.h"

namespace phalanx::shared_memory {
namespace {

PartFlow flow_of(const Execution& execution, const Elements& input, const PartLayout& parts, std::size_t item) {
  return {execution, input, item, largest_part(parts, item), [&](int) -> const PartLayout& { return parts; }};
}

void reduce_scatter_payload(const Execution& execution, const Elements& output, const Elements& input,
                            const PartFlow& flow, const Reduction& op) {
  execution.post(flow.payload());
  execution.group.await_posts();
  c10::SmallVector<const std::byte*, 16> sources;
  for (int rank = 0; rank < execution.size(); ++rank) {
    std::byte* const buffer = execution.group.payload_buffer(rank);
    sources.push_back(rank == execution.rank() ? input.data + flow.begin_in_input(rank) : buffer);
    if (rank != execution.rank()) flow.read_share(rank, buffer, output.bytes());
  }
  reduce_run(output, 0, sources, output.bytes(), op);
}

template <class Out>
void reduce_scatter_in_rings(const Execution& execution, const Elements& output, const Elements& input,
                             const PartFlow& flow, const Reduction& op, Out& out) {
  const int self = execution.rank();
  JointInflow in(
      execution.group, pieces_of(output.bytes(), flow.step()),
      [&](int peer, std::int64_t index) { return flow.number(peer, index); }, [](std::int64_t) { return true; },
      [&](std::int64_t index, const auto& piece_of) {
        const PieceRange range(output.bytes(), index, flow.step());
        c10::SmallVector<const std::byte*, 16> sources;
        for (int rank = 0; rank < execution.size(); ++rank) {
          sources.push_back(rank == self ? input.data + flow.begin_in_input(self) + range.begin : piece_of(rank));
        }
        reduce_run(output, range.begin, sources, range.bytes, op);
      });
  run_flows(execution.group, out, in);
}

}  // namespace

void scatter(const Execution& execution, Elements output, Elements input, const PartLayout& parts, int root) {
  auto& group = execution.group;
  const bool is_root = execution.rank() == root;
  const auto flow = flow_of(execution, input, parts, output.item());
  const BulkCopy copy(2 * all_of(parts, output.item()));
  const auto copy_own_part = [&] { copy(output.data, input.data + flow.begin_in_input(root), output.bytes()); };
  if (flow.fits_payload()) {
    execution.post(is_root ? flow.payload() : std::span<const std::byte>());
    if (is_root) return copy_own_part();
    group.await_posts(root);
    return flow.read_share(root, output.data, output.bytes());
  }
  Outflow out(group, is_root ? flow.own_pieces() : 0, flow.writer());
  // All ranks post where the data begins or ends, so that all of them know whether these are in one region.
  const bool through_ring = execution.post_to_copy(is_root ? input : output, {}, out);
  if (is_root && through_ring) {
    run_flow_out(group, out);
    return copy_own_part();
  }
  group.await_posts(root);
  if (is_root || !execution.uses_ring(root)) {
    group.await_posts();
    if (const CopySources sources(execution, copy); sources) {
      sources.copy(output.data, root, flow.begin_in_input(execution.rank()), output.bytes());
      group.mark_finished();
      return is_root ? group.await_finished() : void();
    }
  }
  if (is_root) {
    run_flow_out(group, out);
    return copy_own_part();
  }
  Inflow in(
      group, {{.rank = root, .pieces = pieces_of(output.bytes(), flow.step())}},
      [&](int peer, std::int64_t index) { return flow.number(peer, index); },
      [&](int, std::int64_t index, const std::byte* piece) {
        const PieceRange range(output.bytes(), index, flow.step());
        copy(output.data + range.begin, piece, range.bytes);
      });
  run_flow_in(group, in);
}

void reduce_scatter(const Execution& execution, Elements output, Elements input, const PartLayout& parts,
                    const Reduction& op) {
  const auto flow = flow_of(execution, input, parts, output.item());
  if (flow.fits_payload()) return reduce_scatter_payload(execution, output, input, flow, op);
  Outflow out(execution.group, flow.own_pieces(), flow.writer());
  execution.post(input, {}, out);
  execution.group.await_posts();
  const auto inputs = execution.inputs();
  if (inputs.empty()) return reduce_scatter_in_rings(execution, output, input, flow, op, out);
  c10::SmallVector<const std::byte*, 16> sources;
  for (const auto* address : inputs) sources.push_back(address + flow.begin_in_input(execution.rank()));
  reduce_run(output, 0, sources, output.bytes(), op);
  execution.group.finish();
}

}  // namespace phalanx::shared_memory
