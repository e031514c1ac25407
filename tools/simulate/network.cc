// SPDX-License-Identifier: Apache-2.0
#include "tools/simulate/network.h"

#include <algorithm>
#include <cmath>

namespace phalanx::simulate {

std::int64_t Network::local(const Group& group) const {
  return std::clamp<std::int64_t>(cluster_.ranks_per_host / group.stride, 1, group.ranks);
}

Network::Link Network::inside() const {
  return {cluster_.host_latency, cluster_.host_bandwidth * cluster_.network_efficiency};
}

Network::Link Network::between(std::int64_t streams) const {
  const double share = cluster_.nic_bandwidth / cluster_.oversubscription / static_cast<double>(streams);
  return {cluster_.nic_latency, std::min(share, cluster_.host_bandwidth) * cluster_.network_efficiency};
}

// Returns the slowest link of a ring in the order of ranks. Each group with ranks on a host sends one stream out of it.
Network::Link Network::ring_link(const Group& group) const {
  const auto here = local(group);
  return here == group.ranks ? inside() : between(std::max<std::int64_t>(1, cluster_.ranks_per_host / here));
}

double Network::ring(const Group& group, double bytes) const {
  const auto ranks = static_cast<double>(group.ranks);
  const Link link = ring_link(group);
  return 2 * (ranks - 1) * (link.latency + bytes / ranks / link.bandwidth);
}

double Network::tree(const Group& group, double bytes) const {
  const Link link = ring_link(group);
  return 2 * std::ceil(std::log2(static_cast<double>(group.ranks))) * link.latency + 2 * bytes / link.bandwidth;
}

double Network::hierarchical(const Group& group, double bytes) const {
  const auto here = local(group), hosts = group.ranks / here;
  if (here == 1 || hosts <= 1) return ring(group, bytes);
  const Group in_host{here, group.stride};
  const Link link = between(cluster_.ranks_per_host);
  const auto nodes = static_cast<double>(hosts);
  const double part = bytes / static_cast<double>(here);
  return 2 * half(in_host, bytes) + 2 * (nodes - 1) * (link.latency + part / nodes / link.bandwidth);
}

double Network::all_reduce(const Group& group, double bytes, const std::string& algorithm) const {
  if (group.ranks < 2) return 0;
  if (algorithm == "ring") return ring(group, bytes);
  if (algorithm == "tree") return tree(group, bytes);
  if (algorithm == "hierarchical") return hierarchical(group, bytes);
  return std::min({ring(group, bytes), tree(group, bytes), hierarchical(group, bytes)});
}

double Network::half(const Group& group, double bytes) const { return group.ranks < 2 ? 0 : ring(group, bytes) / 2; }

double Network::all_to_all(const Group& group, double bytes) const {
  if (group.ranks < 2) return 0;
  const auto here = local(group);
  const double part = bytes / static_cast<double>(group.ranks);
  const Link near = inside(), far = between(cluster_.ranks_per_host);
  return static_cast<double>(here - 1) * (near.latency + part / near.bandwidth) +
         static_cast<double>(group.ranks - here) * (far.latency + part / far.bandwidth);
}

double Network::send(const Group& group, double bytes) const {
  if (group.ranks < 2) return 0;
  const Link link = ring_link(group);
  return link.latency + bytes / link.bandwidth;
}

}  // namespace phalanx::simulate
