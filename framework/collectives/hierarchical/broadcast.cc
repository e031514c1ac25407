// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <vector>

#include "framework/base/parts.h"
#include "framework/collectives/hierarchical/collectives.h"
#include "framework/collectives/hierarchical/pieces.h"
#include "framework/comm/operations/part_layout.h"

namespace phalanx::hierarchical {
namespace {

// A rank of scope, given by its group and its rank in that group.
struct Root {
  Root(const Groups& groups, int root) {
    while (!std::ranges::binary_search(groups[group], root)) ++group;
    rank = static_cast<int>(std::ranges::lower_bound(groups[group], root) - groups[group].begin());
  }
  int group = 0;
  int rank = 0;  // rank in the group
};

// The broadcast of one piece, inside the groups and between them.
class PieceBroadcast {
 public:
  PieceBroadcast(const Level& level, Root root, bool sliced, at::Tensor piece)
      : level_(level), root_(root), sliced_(sliced), piece_(std::move(piece)), slice_(piece_) {
    if (!sliced) return;
    counts_ = nearly_equal_counts(piece_.numel(), level.intra->size());
    slice_ = PartLayout(counts_, level.intra->size(), piece_.numel()).of(piece_, level.intra->rank());
  }

  void spread_from_root() {
    if (at_home()) spreading_ = level_.intra->broadcast(piece_, root_.rank);
  }

  void cross() {
    if (at_home()) spreading_.wait();
    const bool carries = sliced_ ? slice_.numel() > 0 : level_.leads();
    if (carries) level_.inter->broadcast(slice_, root_.group).wait();
  }

  void spread() {
    if (at_home()) return;
    spreading_ = sliced_ ? level_.intra->all_gather(piece_, slice_, counts_) : level_.intra->broadcast(piece_, 0);
  }

  void wait() { spreading_.wait(); }

 private:
  bool at_home() const { return level_.group == root_.group; }

  const Level& level_;
  Root root_;
  bool sliced_;
  std::vector<std::int64_t> counts_;  // elements of the ranks' slices
  at::Tensor piece_;
  at::Tensor slice_;  // the part that this rank sends or receives between groups
  Work spreading_;
};

}  // namespace

void broadcast(const Level& level, const at::Tensor& tensor, int root) {
  std::vector<PieceBroadcast> pieces;
  for (auto& piece : pieces_of(level, tensor)) {
    pieces.emplace_back(level, Root(level.groups, root), slices(level, tensor), std::move(piece));
  }
  if (!pieces.empty()) pieces.front().spread_from_root();
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (i + 1 < pieces.size()) pieces[i + 1].spread_from_root();
    pieces[i].cross();
    pieces[i].spread();
  }
  for (auto& piece : pieces) piece.wait();
}

}  // namespace phalanx::hierarchical
