// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/hybrid/communicator.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/backends/hybrid/host_communicator.h"

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
  if (!child) return nullptr;
  Level hosts = link(level().name, child, std::move(intra));
  if (static_cast<int>(hosts.groups.size()) == child->size()) return divide(std::move(child), above_);
  if (hosts.groups.size() > 1) return std::make_shared<HybridCommunicator>(std::move(hosts), above_);
  return std::make_shared<HostCommunicator>(std::move(child), std::move(hosts.intra));
}

}  // namespace phalanx::hybrid
