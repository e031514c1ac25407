// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "tools/simulate/scenario.h"

namespace phalanx::simulate {

/// A group of ranks along one axis: `ranks` ranks, `stride` apart. Hosts have consecutive ranks.
struct Group {
  std::int64_t ranks = 1;
  std::int64_t stride = 1;
};

/// The time of collectives on a cluster, in seconds, if all groups of the axis run at the same time and share the NICs
/// of the hosts. n: bytes of the whole tensor, P: ranks, L of them in each of N hosts. Costs follow Thakur,
/// Rabenseifner and Gropp 2005 (Optimization of Collective Communication Operations in MPICH), section 4:
///
///   ring          2 (P - 1) (latency + n / P / bandwidth of the slowest link)
///   tree          2 log2 P latency + 2 n / bandwidth
///   hierarchical  reduce_scatter in each host, a ring of each rank's part between hosts, all_gather in each host
///   half          reduce_scatter or all_gather: half of a ring
class Network {
 public:
  explicit Network(const ClusterConfig& cluster) : cluster_(cluster) {}

  /// `algorithm`: a value of train.algorithm.
  double all_reduce(const Group& group, double bytes, const std::string& algorithm) const;
  double half(const Group& group, double bytes) const;

  /// `bytes`: what a rank has for all others together. A rank exchanges with the others one after the other.
  double all_to_all(const Group& group, double bytes) const;

  /// Returns the time to send to the next rank of the group.
  double send(const Group& group, double bytes) const;

 private:
  struct Link {
    double latency, bandwidth;
  };

  std::int64_t local(const Group& group) const;  // ranks of the group in a host
  Link inside() const;
  Link between(std::int64_t streams) const;  // link of a host that sends so many streams at a time
  Link ring_link(const Group& group) const;
  double ring(const Group& group, double bytes) const;
  double tree(const Group& group, double bytes) const;
  double hierarchical(const Group& group, double bytes) const;

  ClusterConfig cluster_;
};

}  // namespace phalanx::simulate
