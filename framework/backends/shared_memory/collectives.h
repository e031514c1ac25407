// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "framework/backends/shared_memory/execution.h"
#include "framework/comm/operation.h"
#include "framework/comm/part_layout.h"
#include "framework/comm/reduction.h"

namespace phalanx::shared_memory {

// Collectives of ranks that share memory. P ranks; n bytes are what the operation has in all: the tensor of broadcast,
// reduce and all_reduce, the tensor of all parts of the others.
//
// Each goes one of four ways, which all ranks choose alike:
//
// - At once, where n is small: what others need comes along with the call, in flagged lines or, above kPayloadBytes, in
//   scratch. 1 meeting.
// - Where it lies, where all ranks reach the memory that is read (or else that is written): 2 meetings.
// - Fetched, where ranks copy from each other and no more: the fabric reads what it does not reach (Fabric::fetch),
//   with a call into the system for each peer. 2 meetings. Not for more than caches hold, since the kernel writes
//   through them. Bytes as where it lies, but that all but root read root's n in a broadcast.
// - Through scratch, otherwise: chunk by chunk (step_of), copied in, met, copied out, while others are at the chunk
//   before. 2 meetings and one per chunk. What goes in may be written past the caches (ScratchWriter); but not for
//   all_reduce and reduce, whose ranks take slices back from each other's scratch.
//
// Bytes that all ranks together read and write:
//
//                   where it lies                    through scratch, in addition
//   broadcast       (P-1) n, spread evenly           n written by root
//   reduce          P n read, n written, evenly      P n written, n read; 2 meetings a chunk
//   all_reduce      P n read, P n written, evenly    P n written, P n read; 2 meetings a chunk
//   reduce_scatter  P n read, n written, evenly      (P-1) n written
//   all_gather      P n, evenly                      n written
//   gather          n, by root                       n written
//   scatter         n, by root                       n written, by root
//   all_to_all      P n, evenly                      (P-1) n written
//
// The reductions combine in the order of the ranks whichever way they go, so results are bitwise the same. Where they
// spread evenly, all_reduce and reduce are a reduce-scatter and a gather of slices (Rabenseifner 2004), with loads and
// stores for messages.

/// Does `operation`, a collective or a barrier, by the function below that it takes.
void execute(const Execution& execution, const Operation& operation);

void broadcast(const Execution& execution, Elements elements, int root);
void reduce(const Execution& execution, Elements elements, const Reduction& op, int root);
void all_reduce(const Execution& execution, Elements elements, const Reduction& op);
void reduce_scatter(const Execution& execution, Elements output, Elements input, const PartLayout& parts,
                    const Reduction& op);
void all_gather(const Execution& execution, Elements output, Elements input, const PartLayout& parts);
void gather(const Execution& execution, Elements output, Elements input, const PartLayout& parts, int root);
void scatter(const Execution& execution, Elements output, Elements input, const PartLayout& parts, int root);

/// Throws kMismatch, on all ranks alike, where a rank expects another count than its peer sends.
void all_to_all(const Execution& execution, Elements output, Elements input, const PartLayout& from,
                const PartLayout& to);

/// Every rank's `mine` to every rank, in rank order; at most kScratchBytes, the same size on all ranks. Part of `call`.
void exchange(Group& group, const Call& call, std::span<const std::byte> mine, std::span<std::byte> all);

void barrier(Group& group, std::optional<Seconds> timeout = {});

/// all_reduce and reduce of more than this combine where it lies, if all ranks reach it.
inline constexpr std::size_t kInPlaceBytes = kPayloadBytes;

}  // namespace phalanx::shared_memory
