// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "framework/backends/gloo/group.h"
#include "framework/comm/operations/operation.h"

/// The collectives of one group; they block. Gloo's own algorithms are used where it has them. n bytes, P ranks.
///
///   broadcast       Gloo: binomial tree; ceil(log2 P) steps, n bytes each
///   all_reduce      if n (P - 1)^2 is at most kAtOnceBytes, each rank sends its tensor to all others in one step.
///                   Otherwise Gloo: up to kBcubeBytes recursive halving and doubling for the powers of two in P, and a
///                   direct exchange for its odd factors; above that a ring in segments; 2 n (P - 1) / P bytes per rank
///   reduce          Gloo: the reduce-scatter of the ring, then a gather of the parts; 2 n (P - 1) / P bytes per rank.
///                   Up to kDirectReduceBytes, messages straight to the root (framework/collectives/direct.h)
///   all_gather      Gloo: ring; P - 1 steps
///   barrier         Gloo: dissemination; ceil(log2 P) steps
///   gather, scatter, all_to_all   each part from its owner to its user, all at once: as in Gloo, but with parts of any
///                   size, directly from and to the tensors
///
/// Gloo combines elements in its own order, so reductions must be commutative, except in an all_reduce in one step,
/// which combines in rank order. Every element is combined by a single rank, or in the same order by all of them, so
/// all ranks get the same bits.
namespace phalanx::gloo {

void broadcast(const CollectiveCall& collective, const Operation& operation);
void reduce(const CollectiveCall& collective, const Operation& operation);
void all_reduce(const CollectiveCall& collective, const Operation& operation);
void all_reduce_at_once(const CollectiveCall& collective, const Operation& operation);
void all_gather(const CollectiveCall& collective, const Operation& operation);
void barrier(const CollectiveCall& collective);

void gather(const CollectiveCall& collective, const Operation& operation);
void scatter(const CollectiveCall& collective, const Operation& operation);
void all_to_all(const CollectiveCall& collective, const Operation& operation);

/// Returns true if an all_reduce of `bytes` is faster in one step.
bool reduces_at_once(std::size_t bytes, int ranks);

inline constexpr std::size_t kAtOnceBytes = 16 << 10;  // the messages of all ranks of a host share its link
inline constexpr std::size_t kBcubeBytes = 4 << 20;    // for fewer bytes the ring waits for its neighbors too often
inline constexpr std::size_t kDirectReduceBytes = 64 << 10;

}  // namespace phalanx::gloo
