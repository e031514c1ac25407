// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "framework/comm/mesh.h"
#include "framework/parallel/flat_parameters.h"

namespace phalanx {

/// Some of a rank's parameters, and the ranks that have the same ones.
struct ReplicaGroup {
  CommunicatorPtr group, control;  // the same ranks (Mesh)
  FlatParameters parameters;       // whole buckets of those that it was taken from, in the same memory
};

/// The parameters by the ranks that have the same ones: first those that all ranks of the mesh's replicas have; then,
/// where the mesh has an expert axis, those of experts, which only ranks with the same experts have. No bucket may hold
/// both. At least one group. Collective.
std::vector<ReplicaGroup> replica_groups(
    const Mesh& mesh, const FlatParameters& parameters,
    const std::function<bool(const std::string& parameter)>& is_expert = [](const std::string&) { return false; });

}  // namespace phalanx
