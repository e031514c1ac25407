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
// Each operation uses one of five ways. All ranks choose the same one:
//
// - With the posts, if the data of each rank is small (kPayloadBytes): its first bytes are in the post itself, the rest
//   in flagged lines.
// - In place, if all ranks reach the memory that is read (or the memory that is written).
// - Through rings, otherwise: each rank writes pieces of its data to its ring, and the ranks that need them take them
//   at the same time, so that both sides work at once. Pieces may be written past the caches (PieceWriter).
// - In scratch memory, for an all_reduce that would take two shots through rings if ranks share cores: they copy
//   kScratchBytes at a time there, combine them in place, and copy the result back. A core then changes between ranks
//   four times for that many bytes, instead of for every piece.
// - Fetched, if the caller asks for it (NativeWay::kKernelCopy): the fabric reads memory that is not mapped here
//   (Fabric::fetch), with one system call per peer. One copy instead of two, but the kernel is slower, and only the
//   reader works.
//
// In place, in scratch memory and fetched, ranks wait for each other twice: before they use each other's memory, and
// before any of them may use its own memory again. With posts and through rings, a rank waits only for the ranks whose
// data it needs. A rank that only sends is done when its data is in shared memory. There is room for the data of kLead
// small operations, or for kRingBytes.
//
// Bytes that all ranks together read and write, for P ranks and n bytes:
//
//                   in place                        through rings
//   broadcast       (P-1) n, spread evenly          n written by root, (P-1) n read
//   reduce          P n read, n written, evenly     (P-1) n written, (P-1) n read by root
//   all_reduce      P n read, P n written, evenly   one shot: P n written, P (P-1) n read
//                                                   two shots: 2 n per rank written, 2 (P-1)/P n per rank read
//   reduce_scatter  P n read, n written, evenly     (P-1) n written and read
//   all_gather      P n, evenly                     n written, (P-1) n read
//   gather          n, by root                      (P-1)/P n written, and read by root
//   scatter         n, evenly                       (P-1)/P n written by root, and read
//   all_to_all      P n, evenly                     (P-1) n written and read
//
// Reductions combine in rank order in each of these ways, so the results are bitwise the same. In place and in two
// shots, all_reduce is a reduce-scatter and a gather of slices (Rabenseifner 2004), with loads and stores instead of
// messages. Two shots are taken from three ranks on, if the tensor is not small.

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

/// Gathers the `mine` of every rank in `all` on every rank, in rank order. `mine` has the same size on all ranks. It is
/// a part of operation `call`.
void exchange(Group& group, const Call& call, std::span<const std::byte> mine, std::span<std::byte> all);

void barrier(Group& group, std::optional<Seconds> timeout = {});

}  // namespace phalanx::shared_memory
