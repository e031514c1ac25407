// SPDX-License-Identifier: Apache-2.0
#include "framework/collectives/hierarchical/pieces.h"

#include "framework/base/parts.h"
#include "framework/comm/operations/part_layout.h"

namespace phalanx::hierarchical {

// Each world has one flight recorder and one queue.
bool overlaps(const Level& level) { return &level.intra->recorder() != &level.scope->recorder(); }

std::vector<at::Tensor> pieces_of(const Level& level, const at::Tensor& tensor) {
  const std::int64_t elements = tensor.numel();
  if (elements == 0) return {};
  const auto bytes = static_cast<std::int64_t>(tensor.nbytes());
  const std::int64_t pieces = overlaps(level) ? (bytes + kPieceBytes - 1) / kPieceBytes : 1;
  const auto counts = nearly_equal_counts(elements, pieces);
  const PartLayout parts(counts, static_cast<int>(pieces), elements);
  std::vector<at::Tensor> views;
  for (int piece = 0; piece < parts.ranks(); ++piece) views.push_back(parts.of(tensor, piece));
  return views;
}

bool slices(const Level& level, const at::Tensor& tensor) {
  return level.cartesian() && static_cast<std::int64_t>(tensor.nbytes()) >= kSlicedBytes;
}

}  // namespace phalanx::hierarchical
