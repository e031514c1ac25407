// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <vector>

#include "framework/base/parts.h"
#include "framework/collectives/hierarchical/collectives.h"
#include "framework/collectives/hierarchical/exchange.h"
#include "framework/collectives/hierarchical/order.h"
#include "framework/collectives/hierarchical/pieces.h"
#include "framework/comm/operations/part_layout.h"

namespace phalanx::hierarchical {
namespace {

// A piece on its way through three steps: into this rank's slice, between the groups, and back to the whole group.
class SlicedAllReduce {
 public:
  SlicedAllReduce(const Level& level, at::Tensor piece)
      : level_(level), counts_(nearly_equal_counts(piece.numel(), level.intra->size())), piece_(std::move(piece)) {
    slice_ = PartLayout(counts_, level.intra->size(), piece_.numel()).of(piece_, level.intra->rank());
  }

  void enter(const Reduction& op) { entering_ = level_.intra->reduce_scatter(slice_, piece_, step_of(op), counts_); }

  void cross(const Reduction& op) {
    entering_.wait();
    if (slice_.numel() == 0) return;  // the same holds for every rank that this one would communicate with
    level_.inter->all_reduce(slice_, step_of(op)).wait();
    finish(level_, slice_, op);
  }

  void leave() { leaving_ = level_.intra->all_gather(piece_, slice_, counts_); }
  void wait() { leaving_.wait(); }

 private:
  const Level& level_;
  std::vector<std::int64_t> counts_;  // elements of the ranks' slices
  at::Tensor piece_;
  at::Tensor slice_;
  Work entering_;
  Work leaving_;
};

// The same steps, but with an Exchange between groups: the messages of one piece travel while others are combined.
class ExchangedAllReduce {
 public:
  ExchangedAllReduce(const Level& level, at::Tensor piece, const Reduction& op)
      : level_(level),
        counts_(nearly_equal_counts(piece.numel(), level.intra->size())),
        piece_(std::move(piece)),
        slice_(PartLayout(counts_, level.intra->size(), piece_.numel()).of(piece_, level.intra->rank())),
        exchange_(level.inter, slice_, step_of(op)) {}

  void enter(const Reduction& op) {
    level_.intra->reduce_scatter(slice_, piece_, step_of(op), counts_).wait();
    exchange_.scatter();
  }

  void combine(const Reduction& op) {
    exchange_.combine();
    finish(level_, exchange_.own(), op);
    exchange_.gather();
  }

  void leave() {
    exchange_.wait();
    level_.intra->all_gather(piece_, slice_, counts_).wait();
  }

 private:
  const Level& level_;
  std::vector<std::int64_t> counts_;  // elements of the ranks' slices
  at::Tensor piece_;
  at::Tensor slice_;
  Exchange exchange_;
};

// Three pieces are in flight at a time, so the messages of one travel while another is processed inside its group.
void exchange(const Level& level, const at::Tensor& tensor, const Reduction& op) {
  std::vector<ExchangedAllReduce> pieces;
  for (auto& piece : pieces_of(level, tensor)) pieces.emplace_back(level, std::move(piece), op);
  for (std::size_t i = 0; i < pieces.size() + 2; ++i) {
    if (i < pieces.size()) pieces[i].enter(op);
    if (i >= 1 && i - 1 < pieces.size()) pieces[i - 1].combine(op);
    if (i >= 2) pieces[i - 2].leave();
  }
}

// The same steps through the leader.
class LeaderAllReduce {
 public:
  LeaderAllReduce(const Level& level, at::Tensor piece) : level_(level), piece_(std::move(piece)) {}

  void enter(const Reduction& op) { entering_ = level_.intra->reduce(piece_, step_of(op), 0); }

  void cross(const Reduction& op) {
    entering_.wait();
    if (!level_.leads()) return;
    level_.inter->all_reduce(piece_, step_of(op)).wait();
    finish(level_, piece_, op);
  }

  void leave() { leaving_ = level_.intra->broadcast(piece_, 0); }
  void wait() { leaving_.wait(); }

 private:
  const Level& level_;
  at::Tensor piece_;
  Work entering_;
  Work leaving_;
};

// One piece enters its group before the previous one is sent between groups. All ranks of a group launch in this order.
template <class AllReduce>
void run_pieces(const Level& level, const at::Tensor& tensor, const Reduction& op) {
  std::vector<AllReduce> pieces;
  for (auto& piece : pieces_of(level, tensor)) pieces.emplace_back(level, std::move(piece));
  if (!pieces.empty()) pieces.front().enter(op);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (i + 1 < pieces.size()) pieces[i + 1].enter(op);
    pieces[i].cross(op);
    pieces[i].leave();
  }
  for (auto& piece : pieces) piece.wait();
}

}  // namespace

void all_reduce(const Level& level, const at::Tensor& tensor, const Reduction& op) {
  check_order("all_reduce", level, op);
  const bool few = level.groups.size() <= static_cast<std::size_t>(Exchange::kMaxGroups);
  if (slices(level, tensor) && overlaps(level) && few && !level.inter_has_levels) {
    exchange(level, tensor, op);
  } else if (slices(level, tensor)) {
    run_pieces<SlicedAllReduce>(level, tensor, op);
  } else {
    run_pieces<LeaderAllReduce>(level, tensor, op);
  }
}

}  // namespace phalanx::hierarchical
