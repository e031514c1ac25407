// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <utility>
#include <vector>

#include "framework/collectives/hierarchical/collectives.h"
#include "framework/collectives/hierarchical/pieces.h"

namespace phalanx::hierarchical {
namespace {

// One piece of all parts, while it is gathered.
struct GatheredPiece {
  Staging staging;
  Work last_step;

  void finish(const at::Tensor& output) {
    last_step.wait();
    staging.copy_out(output);
  }
};

Work gather_by_columns(const Level& level, const Staging& staging, const at::Tensor& own) {
  const int column = level.intra->rank();
  const at::Tensor bundle = staging.bundle(column);
  level.inter->all_gather(bundle, own, staging.counts_in(column)).wait();
  return level.intra->all_gather(staging.all(), bundle, staging.bundle_counts());
}

Work gather_by_leaders(const Level& level, const Staging& staging, const at::Tensor& own) {
  const at::Tensor bundle = staging.bundle(level.group);
  level.intra->gather(bundle, own, 0, staging.counts_in(level.group)).wait();
  if (level.leads()) level.inter->all_gather(staging.all(), bundle, staging.bundle_counts()).wait();
  return level.intra->broadcast(staging.all(), 0);
}

}  // namespace

// While a piece is gathered inside the group, the next one may be gathered between groups, in the other half of the
// scratch memory.
void all_gather(const Level& level, Scratch& scratch, const at::Tensor& output, const at::Tensor& input,
                const PartLayout& parts) {
  const auto bundles = bundles_of(level);
  const bool ahead = overlaps(level);
  std::optional<GatheredPiece> previous;
  for (int number = 0; number < pieces_of_parts(parts, input.scalar_type()); ++number) {
    GatheredPiece piece{Staging(bundles, parts, number, scratch, input.scalar_type()), {}};
    const at::Tensor own = piece.staging.own(input, level.scope->rank());
    piece.last_step =
        level.cartesian() ? gather_by_columns(level, piece.staging, own) : gather_by_leaders(level, piece.staging, own);
    if (previous) previous->finish(output);
    previous = std::move(piece);
    if (ahead) continue;
    previous->finish(output);
    previous.reset();
  }
  if (previous) previous->finish(output);
}

}  // namespace phalanx::hierarchical
