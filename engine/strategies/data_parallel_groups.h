// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "framework/comm/mesh/mesh.h"
#include "framework/partition/flat_parameters.h"

namespace phalanx {

/// Some of a rank's parameters, together with the ranks that have the same ones.
struct DataParallelGroup {
  CommunicatorPtr group, control;  // two groups of the same ranks (see Mesh)
  FlatParameters parameters;       // a subset of the buckets, in the same memory
};

/// Groups the parameters by the ranks that have the same ones. The first group has the parameters that all ranks of the
/// mesh's replicas have. If the mesh has an expert axis, the parameters of experts, which only ranks with the same
/// experts have, form a second group. No bucket may contain both. Returns at least one group. Collective.
std::vector<DataParallelGroup> data_parallel_groups(
    const Mesh& mesh, const FlatParameters& parameters,
    const std::function<bool(const std::string& parameter)>& is_expert = [](const std::string&) { return false; });

}  // namespace phalanx
