// SPDX-License-Identifier: Apache-2.0
// all_reduce and reduce.
#include <cstdint>
#include <span>
#include <utility>

#include "framework/backends/shared_memory/collectives.h"
#include "framework/backends/shared_memory/flow.h"
#include "framework/backends/shared_memory/pieces.h"
#include "framework/backends/shared_memory/reduce_run.h"
#include "framework/backends/shared_memory/slice.h"
#include "framework/backends/shared_memory/two_shot.h"

namespace phalanx::shared_memory {
namespace {

constexpr int kAll = -1;  // as a root: all ranks get the result

// One shot has a rank read the whole tensors of all others; two shots have it read a slice of each, and then the other
// slices of the result, which takes longer to begin.
bool is_one_shot(const Execution& execution, std::size_t bytes) {
  constexpr std::size_t kMostRead = 32 << 10;
  if (execution.way != NativeWay::kDefault) return execution.way == NativeWay::kOneShot;
  return execution.size() <= 2 || bytes * static_cast<std::size_t>(execution.size() - 1) <= kMostRead;
}

// Combines this rank's slice of the data at `addresses` and writes it to the root's memory, or to the memory of all
// ranks.
void reduce_own_slice(const Execution& execution, Addresses addresses, std::int64_t count, const Reduction& op,
                      int root) {
  const auto item = c10::elementSize(execution.call.dtype);
  const Slice slice = slice_of(count, item, execution.rank(), execution.size());
  for (auto& address : addresses) address += static_cast<std::size_t>(slice.begin) * item;
  const std::span<std::byte* const> targets(root == kAll ? addresses.data() : &addresses[root],
                                            root == kAll ? addresses.size() : 1);
  const c10::SmallVector<const std::byte*, 16> sources(addresses.begin(), addresses.end());
  reduce(execution.call.dtype, op, targets, sources, slice.count);
}

// Two shots in scratch memory, for ranks that share cores: each phase of a chunk is long, so that cores change between
// ranks rarely, and all of it stays in the caches. Ranks write the results to the scratch of all.
void reduce_in_scratch(const Execution& execution, const Elements& elements, const Reduction& op) {
  auto& group = execution.group;
  Addresses scratches;
  for (int rank = 0; rank < execution.size(); ++rank) scratches.push_back(group.scratch(rank));
  std::byte* const own = scratches[execution.rank()];
  for (std::int64_t chunk = 0; chunk < pieces_of(elements.bytes(), kScratchBytes); ++chunk) {
    const PieceRange range(elements.bytes(), chunk, kScratchBytes);
    copy_bytes(own, elements.data + range.begin, range.bytes);
    group.barrier();
    reduce_own_slice(execution, scratches, static_cast<std::int64_t>(range.bytes / elements.item()), op, kAll);
    group.barrier();
    copy_bytes(elements.data + range.begin, own, range.bytes);
  }
}

void reduce_payloads(const Execution& execution, const Elements& elements, const Reduction& op, int root) {
  auto& group = execution.group;
  const bool gets_result = root == kAll || root == execution.rank(), sends = root != execution.rank();
  execution.post(sends ? std::span<const std::byte>(elements.data, elements.bytes()) : std::span<const std::byte>());
  if (!gets_result) return;
  group.await_posts();
  c10::SmallVector<const std::byte*, 16> sources;
  for (int rank = 0; rank < execution.size(); ++rank) {
    std::byte* const buffer = group.payload_buffer(rank);
    sources.push_back(rank == execution.rank() ? elements.data : buffer);
    if (rank != execution.rank()) group.read_payload(rank, 0, elements.bytes(), buffer);
  }
  reduce_run(elements, 0, sources, elements.bytes(), op);
}

// One shot: every rank that gets the result reads everything and combines it. Each piece of its own tensor is written
// to the ring before the result replaces it.
template <class Out>
void reduce_whole(const Execution& execution, const Elements& elements, const Reduction& op, std::size_t step,
                  Out& out) {
  auto& group = execution.group;
  JointInflow in(
      group, pieces_of(elements.bytes(), step),
      [&](int peer, std::int64_t index) { return group.first_piece_of(peer) + index; },
      [&](std::int64_t index) { return out.done() || index < out.written(); },
      [&](std::int64_t index, const auto& piece_of) {
        const PieceRange range(elements.bytes(), index, step);
        c10::SmallVector<const std::byte*, 16> sources;
        for (int rank = 0; rank < execution.size(); ++rank) {
          sources.push_back(rank == execution.rank() ? elements.data + range.begin : piece_of(rank));
        }
        reduce_run(elements, range.begin, sources, range.bytes, op);
      });
  run_flows(group, out, in);
}

// If all ranks reach the tensors of all, each combines a slice in place and writes it to the root or to all.
bool reduced_in_place(const Execution& execution, const Elements& elements, const Reduction& op, int root) {
  auto addresses = execution.inputs();
  if (addresses.empty()) return false;
  reduce_own_slice(execution, std::move(addresses), elements.count, op, root);
  execution.group.finish();
  return true;
}

auto whole_writer(Group& group, const Elements& elements, std::size_t step, int reader) {
  return [&group, &elements, step, reader](std::int64_t index, std::byte* piece) {
    const PieceRange range(elements.bytes(), index, step);
    group.piece_writer().write(piece, elements.data + range.begin, range.bytes);
    return reader;
  };
}

}  // namespace

void all_reduce(const Execution& execution, Elements elements, const Reduction& op) {
  auto& group = execution.group;
  const std::size_t bytes = elements.bytes(), step = step_of(bytes);
  if (bytes <= kPayloadBytes) return reduce_payloads(execution, elements, op, kAll);
  if (is_one_shot(execution, bytes)) {
    Outflow out(group, pieces_of(bytes, step), whole_writer(group, elements, step, kAllReaders));
    execution.post(elements, {}, out);
    group.await_posts();
    if (!reduced_in_place(execution, elements, op, kAll)) reduce_whole(execution, elements, op, step, out);
  } else if (execution.way == NativeWay::kDefault && group.shares_cores()) {
    NoFlow none;
    execution.post(elements, {}, none);
    group.await_posts();
    if (!reduced_in_place(execution, elements, op, kAll)) reduce_in_scratch(execution, elements, op);
  } else {
    TwoShot shots(execution, elements, op);
    execution.post(elements, {}, shots);
    group.await_posts();
    if (!reduced_in_place(execution, elements, op, kAll)) shots.run();
  }
}

void reduce(const Execution& execution, Elements elements, const Reduction& op, int root) {
  auto& group = execution.group;
  const std::size_t bytes = elements.bytes(), step = step_of(bytes);
  const bool is_root = execution.rank() == root;
  if (bytes <= kPayloadBytes) return reduce_payloads(execution, elements, op, root);
  Outflow out(group, is_root ? 0 : pieces_of(bytes, step), whole_writer(group, elements, step, root));
  const bool through_ring = execution.post(elements, {}, out);
  if (!is_root && through_ring) return run_flow_out(group, out);
  group.await_posts();
  if (reduced_in_place(execution, elements, op, root)) return;
  is_root ? reduce_whole(execution, elements, op, step, out) : run_flow_out(group, out);
}

}  // namespace phalanx::shared_memory
