// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/util/SmallVector.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "framework/backends/shared_memory/group.h"

namespace phalanx::shared_memory {

/// The pieces that this rank leaves in its ring in one operation. fill(i, memory) writes piece i and returns its
/// reader, or kAllReaders.
template <class Fill>
class Outflow {
 public:
  Outflow(Group& group, std::int64_t pieces, Fill fill) : group_(group), pieces_(pieces), fill_(std::move(fill)) {}

  std::int64_t written() const { return written_; }
  bool done() const { return written_ == pieces_; }
  bool ready() const { return !done() && group_.ring_has_room(); }
  bool awaits(int peer) const { return !done() && group_.ring_awaits(peer); }

  /// Writes the next piece; there must be room.
  void step() {
    const int reader = fill_(written_, group_.ring().next());
    group_.publish_piece(reader);
    ++written_;
  }

 private:
  Group& group_;
  std::int64_t pieces_, written_ = 0;
  Fill fill_;
};

/// A rank from whose ring this rank takes pieces.
struct Source {
  int rank = 0;
  std::int64_t pieces = 0, taken = 0;
  std::uint64_t next = 0;  // number of the next piece; set by Inflow
};
using SourceList = c10::SmallVector<Source, 8>;

/// The pieces that this rank takes from the rings of others, from each as soon as it is there. number(rank, i) is the
/// number of piece i in the ring of a rank, and take(rank, i, memory) uses it.
template <class Number, class Take>
class Inflow {
 public:
  Inflow(Group& group, SourceList sources, Number number, Take take)
      : group_(group), sources_(std::move(sources)), number_(std::move(number)), take_(std::move(take)) {
    for (auto& source : sources_) source.next = number_(source.rank, 0);
  }

  bool done() const { return std::ranges::all_of(sources_, &Inflow::is_done); }
  bool ready() {
    return std::ranges::any_of(sources_, [this](const Source& source) { return has_next(source); });
  }
  bool awaits(int peer) {
    return std::ranges::any_of(
        sources_, [&](const Source& source) { return source.rank == peer && !is_done(source) && !has_next(source); });
  }

  /// Takes a piece of each rank that has written one.
  void step() {
    for (auto& source : sources_) {
      if (!has_next(source)) continue;
      auto& ring = group_.ring_of(source.rank);
      take_(source.rank, source.taken, ring.piece(source.next));
      ring.take(source.next);
      if (++source.taken < source.pieces) source.next = number_(source.rank, source.taken);
    }
  }

 private:
  static bool is_done(const Source& source) { return source.taken == source.pieces; }
  bool has_next(const Source& source) { return !is_done(source) && group_.ring_of(source.rank).has(source.next); }

  Group& group_;
  SourceList sources_;
  Number number_;
  Take take_;
};

/// The pieces that this rank takes from the rings of all other ranks together: piece i of all of them is combined.
/// take(i, piece_of) uses the pieces piece_of(rank). A piece is taken only if may_take(i) returns true.
template <class Number, class MayTake, class Take>
class JointInflow {
 public:
  JointInflow(Group& group, std::int64_t pieces, Number number, MayTake may_take, Take take)
      : group_(group),
        pieces_(pieces),
        number_(std::move(number)),
        may_take_(std::move(may_take)),
        take_(std::move(take)) {}

  bool done() const { return taken_ == pieces_; }
  bool ready() {
    if (done() || !may_take_(taken_)) return false;
    for (int peer = 0; peer < group_.size(); ++peer) {
      if (!is_here(peer)) return false;
    }
    return true;
  }
  bool awaits(int peer) { return !done() && !is_here(peer); }

  void step() {
    take_(taken_, [this](int peer) { return group_.ring_of(peer).piece(number_(peer, taken_)); });
    for (int peer = 0; peer < group_.size(); ++peer) {
      if (peer != group_.rank()) group_.ring_of(peer).take(number_(peer, taken_));
    }
    ++taken_;
  }

 private:
  bool is_here(int peer) { return peer == group_.rank() || group_.ring_of(peer).has(number_(peer, taken_)); }

  Group& group_;
  std::int64_t pieces_, taken_ = 0;
  Number number_;
  MayTake may_take_;
  Take take_;
};

/// Stands for the side of a rank that only sends or only receives.
struct NoFlow {
  static constexpr bool done() { return true; }
  static constexpr bool ready() { return false; }
  static constexpr bool awaits(int) { return false; }
  static constexpr void step() {}
};

/// Runs both sides of an operation until they are done. A piece is written and one is taken by turns, so that a rank
/// has to wait only if its peers are slower.
template <class Out, class In>
void run_flows(Group& group, Out& out, In& in) {
  while (!out.done() || !in.done()) {
    const bool writes = out.ready();
    if (writes) out.step();
    const bool takes = in.ready();
    if (takes) in.step();
    if (writes || takes) continue;
    group.await([&] { return out.ready() || in.ready(); },
                [&](int peer) { return !out.awaits(peer) && !in.awaits(peer); });
  }
}

template <class Out>
void run_flow_out(Group& group, Out& out) {
  NoFlow none;
  run_flows(group, out, none);
}

template <class In>
void run_flow_in(Group& group, In& in) {
  NoFlow none;
  run_flows(group, none, in);
}

}  // namespace phalanx::shared_memory
