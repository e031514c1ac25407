// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/hybrid/communicator.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/backends/hybrid/host_communicator.h"

namespace phalanx::hybrid {

HybridCommunicator::HybridCommunicator(Level hosts)
    : HierarchicalCommunicator(hosts, {{hosts.name, std::to_string(hosts.group)}}) {}

CommunicatorPtr HybridCommunicator::split(int color, int key) {
  auto child = inner()->split(color, key);
  auto intra = split_in_order(*inner(), *level().intra, color, key);
  if (!child) return nullptr;
  Level hosts = link(level().name, child, std::move(intra));
  if (static_cast<int>(hosts.groups.size()) == child->size()) return child;
  if (hosts.groups.size() > 1) return std::make_shared<HybridCommunicator>(std::move(hosts));
  return std::make_shared<HostCommunicator>(std::move(child), std::move(hosts.intra));
}

}  // namespace phalanx::hybrid
