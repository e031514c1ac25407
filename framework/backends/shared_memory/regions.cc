// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/shared_memory/regions.h"

namespace phalanx::shared_memory {

std::shared_ptr<void> Regions::add(const std::shared_ptr<Regions>& regions, const Region& region, int rank,
                                   std::shared_ptr<void> mapping) {
  std::byte* part = region.base + region.stride * static_cast<std::size_t>(rank);
  {
    std::lock_guard lock(regions->mutex_);
    regions->parts_.emplace(part, region);
  }
  // The entry must be removed before the mapping: after that, the addresses may be used for other memory.
  return {part, [regions, mapping = std::move(mapping)](void* begin) mutable {
            regions->remove(static_cast<std::byte*>(begin));
            mapping.reset();
          }};
}

Location Regions::locate(const void* begin, std::size_t bytes) const {
  const auto* first = static_cast<const std::byte*>(begin);
  std::lock_guard lock(mutex_);
  auto next = parts_.upper_bound(first);
  if (next == parts_.begin()) return {};
  const auto& [part, region] = *std::prev(next);
  const auto offset = static_cast<std::size_t>(first - part);
  if (offset + bytes > region.stride) return {};
  return {offset, region.id};
}

Regions::Region Regions::find(std::uint32_t id) const {
  std::lock_guard lock(mutex_);
  for (const auto& [part, region] : parts_) {
    if (region.id == id) return region;
  }
  return {};
}

void Regions::remove(const std::byte* part) {
  std::lock_guard lock(mutex_);
  parts_.erase(part);
}

}  // namespace phalanx::shared_memory
