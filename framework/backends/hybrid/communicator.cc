// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/hybrid/communicator.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/backends/hybrid/host_communicator.h"
#include "framework/backends/hybrid/survivors.h"

namespace phalanx::hybrid {
namespace {

// Makes the links between hosts hierarchical.
Level divide_links(Level hosts, const std::vector<Key>& above) {
  if (!hosts.inter) return hosts;
  auto links = divide(hosts.inter, above);
  hosts.inter_has_levels = links != hosts.inter;
  hosts.inter = std::move(links);
  return hosts;
}

}  // namespace

HybridCommunicator::HybridCommunicator(Level hosts, std::vector<Key> above)
    : HierarchicalCommunicator(divide_links(hosts, above), {{hosts.name, std::to_string(hosts.group)}}),
      above_(std::move(above)) {}

CommunicatorPtr HybridCommunicator::split(int color, int key) {
  auto child = inner()->split(color, key);
  auto intra = split_in_order(*inner(), *level().intra, color, key);
  return child ? combine(std::move(child), std::move(intra)) : nullptr;
}

CommunicatorPtr HybridCommunicator::do_shrink() {
  return shrink_together(
      {.all = inner(), .host = level().intra}, [this] { leave_links(); },
      [this](const Survivors& left) { return combine(left.all, left.host); });
}

std::string HybridCommunicator::why_no_shrink() const { return why_not_together(*inner(), *level().intra); }

// Collective over `all`, and blocking. `host` has the ranks of `all` that are on this host.
CommunicatorPtr HybridCommunicator::combine(CommunicatorPtr all, CommunicatorPtr host) const {
  Level hosts = link(level().name, all, std::move(host));
  if (static_cast<int>(hosts.groups.size()) == all->size()) return divide(std::move(all), above_);
  if (hosts.groups.size() > 1) return std::make_shared<HybridCommunicator>(std::move(hosts), above_);
  return std::make_shared<HostCommunicator>(std::move(all), std::move(hosts.intra));
}

}  // namespace phalanx::hybrid
