// SPDX-License-Identifier: Apache-2.0
#include "framework/collectives/hierarchical/staging.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <numeric>
#include <utility>

#include "framework/collectives/hierarchical/pieces.h"

namespace phalanx::hierarchical {

at::Tensor Scratch::half(int number, std::int64_t elements, c10::ScalarType dtype) {
  // Large enough for at least one element of every rank.
  const std::int64_t bytes = kPieceBytes;
  const auto wanted = elements * static_cast<std::int64_t>(c10::elementSize(dtype));
  if (!bytes_.defined() || bytes_.size(1) < wanted) {
    bytes_ = intra_->allocate({2, std::max(bytes, wanted)}, at::TensorOptions(at::kByte));
  }
  return elements_of(bytes_, number * bytes_.size(1), wanted).view(dtype);
}

std::vector<std::vector<int>> bundles_of(const Level& level) {
  if (!level.cartesian()) return level.groups;
  std::vector<std::vector<int>> bundles(level.groups.front().size());
  for (const auto& group : level.groups) {
    for (std::size_t rank = 0; rank < group.size(); ++rank) bundles[rank].push_back(group[rank]);
  }
  return bundles;
}

std::int64_t piece_length(int ranks, c10::ScalarType dtype) {
  const auto elements = kPieceBytes / static_cast<std::int64_t>(c10::elementSize(dtype));
  return std::max<std::int64_t>(elements / ranks, 1);
}

int pieces_of_parts(const PartLayout& parts, c10::ScalarType dtype) {
  std::int64_t longest = 0;
  for (int rank = 0; rank < parts.ranks(); ++rank) longest = std::max(longest, parts.count(rank));
  const auto length = piece_length(parts.ranks(), dtype);
  return static_cast<int>((longest + length - 1) / length);
}

Staging::Staging(const std::vector<std::vector<int>>& bundles, const PartLayout& parts, int piece, Scratch& scratch,
                 c10::ScalarType dtype)
    : parts_(&parts), first_(piece * piece_length(parts.ranks(), dtype)), length_(piece_length(parts.ranks(), dtype)) {
  std::int64_t offset = 0;
  for (const auto& bundle : bundles) {
    auto& counts = counts_.emplace_back();
    for (const int rank : bundle) {
      counts.push_back(count(rank));
      runs_.push_back({parts.begin(rank) + first_, offset, counts.back()});
      offset += counts.back();
    }
    bundle_counts_.push_back(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}));
  }
  all_ = scratch.half(piece % 2, offset, dtype);
}

std::int64_t Staging::count(int rank) const {
  return std::clamp<std::int64_t>(parts_->count(rank) - first_, 0, length_);
}

at::Tensor Staging::bundle(int number) const {
  return PartLayout(bundle_counts_, static_cast<int>(bundle_counts_.size()), all_.numel()).of(all_, number);
}

at::Tensor Staging::own(const at::Tensor& part, int rank) const {
  return elements_of(part, std::min(first_, parts_->count(rank)), count(rank));
}

void Staging::copy_in(const at::Tensor& parts) {
  const auto size = all_.element_size();
  auto* to = static_cast<std::byte*>(all_.mutable_data_ptr());
  const auto* from = static_cast<const std::byte*>(parts.const_data_ptr());
  for (const auto& run : runs_) {
    if (run.count > 0) std::memcpy(to + run.offset * size, from + run.begin * size, run.count * size);
  }
}

void Staging::copy_out(const at::Tensor& parts) const {
  const auto size = all_.element_size();
  auto* to = static_cast<std::byte*>(parts.mutable_data_ptr());
  const auto* from = static_cast<const std::byte*>(all_.const_data_ptr());
  for (const auto& run : runs_) {
    if (run.count > 0) std::memcpy(to + run.begin * size, from + run.offset * size, run.count * size);
  }
}

}  // namespace phalanx::hierarchical
