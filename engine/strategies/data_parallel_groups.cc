// SPDX-License-Identifier: Apache-2.0
#include "engine/strategies/data_parallel_groups.h"

#include <utility>

namespace phalanx {

std::vector<DataParallelGroup> data_parallel_groups(const Mesh& mesh, const FlatParameters& parameters,
                                                    const std::function<bool(const std::string&)>& is_expert) {
  std::vector<Bucket> dense, experts;
  for (const auto& bucket : parameters.buckets()) {
    const bool expert = mesh.shape()[Axis::kExpert] > 1 && is_expert(bucket.segments.at(0).name);
    (expert ? experts : dense).push_back(bucket);
  }
  constexpr AxisSet kSameExperts{Axis::kData, Axis::kContext};
  if (mesh.shape()[Axis::kExpert] >
      1) {  // including ranks whose layers have no experts: creating a group is collective
    mesh.group(kSameExperts);
    mesh.control(kSameExperts);
  }
  std::vector<DataParallelGroup> groups;
  if (!dense.empty() || experts.empty()) {
    groups.push_back({mesh.replicas(), mesh.control(kReplicaAxes), FlatParameters(std::move(dense))});
  }
  if (!experts.empty()) {
    groups.push_back({mesh.group(kSameExperts), mesh.control(kSameExperts), FlatParameters(std::move(experts))});
  }
  return groups;
}

}  // namespace phalanx
