// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "framework/backends/gloo/group.h"
#include "framework/comm/operation.h"

/// The collectives of one group, blocking. Those that Gloo has are Gloo's; n bytes, P ranks.
///
///   broadcast       Gloo's: binomial tree; ceil(log2 P) steps, n bytes each
///   all_reduce      Gloo's: up to kBcubeBytes a recursive halving and doubling where P is a power of two and a direct
///                   exchange in the odd factors of P, beyond it a ring in segments; 2 n (P - 1) / P bytes per rank
///   reduce          Gloo's: the ring's reduce-scatter, then a gather of the parts; 2 n (P - 1) / P bytes per rank.
///                   Up to kDirectReduceBytes straight to root, by messages (framework/collectives/direct.h)
///   all_gather      Gloo's: ring; P - 1 steps
///   barrier         Gloo's: dissemination; ceil(log2 P) steps
///   gather, scatter, all_to_all   each part from its owner to its user, all at once: what Gloo does, but with parts of
///                   any size, straight from the tensor and into it
///
/// Gloo combines elements in an order of its own, so reductions have to be commutative. Every element is combined by
/// one rank, so all get the same bits.
namespace phalanx::gloo {

void broadcast(const Turn& turn, const Operation& operation);
void reduce(const Turn& turn, const Operation& operation);
void all_reduce(const Turn& turn, const Operation& operation);
void all_gather(const Turn& turn, const Operation& operation);
void barrier(const Turn& turn);

void gather(const Turn& turn, const Operation& operation);
void scatter(const Turn& turn, const Operation& operation);
void all_to_all(const Turn& turn, const Operation& operation);

inline constexpr std::size_t kBcubeBytes = 4 << 20;  // the ring waits for its neighbours too often for less
inline constexpr std::size_t kDirectReduceBytes = 64 << 10;

}  // namespace phalanx::gloo
