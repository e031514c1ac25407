// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "framework/backends/shared_memory/execution.h"
#include "framework/comm/operations/operation.h"
#include "framework/comm/operations/part_layout.h"
#include "framework/comm/operations/reduction.h"

namespace phalanx::shared_memory {

// Collectives of ranks that share memory. P ranks. n is the total number of bytes of the operation: the tensor of
// broadcast, reduce and all_reduce, or the tensor of all parts of the other operations.
//
// Each operation uses one of four ways. All ranks choose the same one:
//
// - At once, if n is small: the data of each rank comes along with its call, in flagged lines or, above kPayloadBytes,
//   in scratch memory. 1 barrier.
// - In place, if all ranks reach the memory that is read (or the memory that is written): 2 barriers.
// - Fetched, if ranks can only copy from each other: the fabric reads memory that is not mapped here (Fabric::fetch),
//   with one system call per peer. 2 barriers. Not used for more data than the caches hold, since the kernel writes
//   through them. Bytes are the same as in place, except that in a broadcast all ranks but the root read the root's n
//   bytes.
// - Through scratch memory, otherwise: each chunk (step_of) is copied in and, after a barrier, copied out, while other
//   ranks still process the previous chunk. 2 barriers, and one per chunk. Data may be written to scratch memory past
//   the caches (ScratchWriter), except in all_reduce and reduce, whose ranks read slices back from each other's
//   scratch.
//
// Bytes that all ranks together read and write:
//
//                   in place                        through scratch, in addition
//   broadcast       (P-1) n, spread evenly          n written by root
//   reduce          P n read, n written, evenly     P n written, n read; 2 barriers per chunk
//   all_reduce      P n read, P n written, evenly   P n written, P n read; 2 barriers per chunk
//   reduce_scatter  P n read, n written, evenly     (P-1) n written
//   all_gather      P n, evenly                     n written
//   gather          n, by root                      n written
//   scatter         n, by root                      n written, by root
//   all_to_all      P n, evenly                     (P-1) n written
//
// Reductions combine in rank order in each of these ways, so the results are bitwise the same. Where the work is spread
// evenly, all_reduce and reduce are a reduce-scatter and a gather of slices (Rabenseifner 2004), with loads and stores
// instead of messages.

/// Performs `operation`, a collective or a barrier, with the corresponding function below.
void execute(const Execution& execution, const Operation& operation);

void broadcast(const Execution& execution, Elements elements, int root);
void reduce(const Execution& execution, Elements elements, const Reduction& op, int root);
void all_reduce(const Execution& execution, Elements elements, const Reduction& op);
void reduce_scatter(const Execution& execution, Elements output, Elements input, const PartLayout& parts,
                    const Reduction& op);
void all_gather(const Execution& execution, Elements output, Elements input, const PartLayout& parts);
void gather(const Execution& execution, Elements output, Elements input, const PartLayout& parts, int root);
void scatter(const Execution& execution, Elements output, Elements input, const PartLayout& parts, int root);

/// Throws kMismatch on all ranks if a rank expects another count than its peer sends.
void all_to_all(const Execution& execution, Elements output, Elements input, const PartLayout& from,
                const PartLayout& to);

/// Gathers the `mine` of every rank in `all` on every rank, in rank order. `mine` has the same size on all ranks, at
/// most kScratchBytes. It is a part of operation `call`.
void exchange(Group& group, const Call& call, std::span<const std::byte> mine, std::span<std::byte> all);

void barrier(Group& group, std::optional<Seconds> timeout = {});

/// Larger tensors of all_reduce and reduce are combined in place, if all ranks reach them.
inline constexpr std::size_t kInPlaceBytes = kPayloadBytes;

}  // namespace phalanx::shared_memory
