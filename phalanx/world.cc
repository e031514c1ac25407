// SPDX-License-Identifier: Apache-2.0
#include "phalanx/world.h"

#include <algorithm>
#include <stdexcept>

#include "framework/comm/launch/locality.h"
#include "framework/comm/mesh/hierarchy.h"
#include "framework/comm/texts.h"

namespace phalanx {

World::World(CommunicatorPtr communicator, c10::Device device)
    : communicator_(std::move(communicator)), device_(device) {
  const Groups hosts = group_by_key(all_gather_text(host_key(), *communicator_));
  hosts_ = static_cast<int>(hosts.size());
  for (int host = 0; host < hosts_; ++host) {
    const auto& ranks = hosts[static_cast<std::size_t>(host)];
    const auto own = std::ranges::find(ranks, rank());
    if (own == ranks.end()) continue;
    host_ = host;
    local_rank_ = static_cast<int>(own - ranks.begin());
    local_size_ = static_cast<int>(ranks.size());
  }
}

Mesh World::mesh(std::initializer_list<std::pair<Axis, std::int64_t>> axes) const {
  MeshShape shape;
  for (const auto& [axis, size] : axes) {
    if (size < 1) throw std::invalid_argument("World::mesh: an axis has at least one rank");
    shape[axis] = size;
  }
  return Mesh(communicator_, shape);
}

}  // namespace phalanx
