// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <utility>

#include "framework/collectives/hierarchical/collectives.h"
#include "framework/collectives/hierarchical/order.h"
#include "framework/collectives/hierarchical/pieces.h"

namespace phalanx::hierarchical {
namespace {

// One piece of all parts, while it is reduced inside the group.
struct ReducedPiece {
  Staging staging;
  Work entering;
};

Work enter(const Level& level, const Staging& staging, const Reduction& op) {
  if (!level.cartesian()) return level.intra->reduce(staging.all(), step_of(op), 0);
  return level.intra->reduce_scatter(staging.bundle(level.intra->rank()), staging.all(), step_of(op),
                                     staging.bundle_counts());
}

void cross(const Level& level, const Staging& staging, const at::Tensor& own, const Reduction& op) {
  if (level.cartesian()) {
    const int column = level.intra->rank();
    level.inter->reduce_scatter(own, staging.bundle(column), step_of(op), staging.counts_in(column)).wait();
  } else {
    const at::Tensor bundle = staging.bundle(level.group);
    if (level.leads()) {
      level.inter->reduce_scatter(bundle, staging.all(), step_of(op), staging.bundle_counts()).wait();
    }
    level.intra->scatter(own, bundle, 0, staging.counts_in(level.group)).wait();
  }
  finish(level, own, op);
}

}  // namespace

// While a piece is reduced between groups, the next one may be reduced inside its group, in the other half of the
// scratch memory.
void reduce_scatter(const Level& level, Scratch& scratch, const at::Tensor& output, const at::Tensor& input,
                    const Reduction& op, const PartLayout& parts) {
  check_order("reduce_scatter", level, op);
  const auto bundles = bundles_of(level);
  const int pieces = pieces_of_parts(parts, input.scalar_type());
  const auto start = [&](int number) -> std::optional<ReducedPiece> {
    if (number >= pieces) return std::nullopt;
    ReducedPiece piece{Staging(bundles, parts, number, scratch, input.scalar_type()), {}};
    piece.staging.copy_in(input);
    piece.entering = enter(level, piece.staging, op);
    return piece;
  };
  const bool ahead = overlaps(level);
  auto piece = start(0);
  for (int number = 0; piece; ++number) {
    auto next = ahead ? start(number + 1) : std::nullopt;
    piece->entering.wait();
    cross(level, piece->staging, piece->staging.own(output, level.scope->rank()), op);
    if (!ahead) next = start(number + 1);
    piece = std::move(next);
  }
}

}  // namespace phalanx::hierarchical
