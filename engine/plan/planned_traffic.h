// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "engine/build/replica.h"
#include "engine/config/train_config.h"
#include "engine/plan/operation_counts.h"

// The operations of a step that follow from the config and the buckets of a replica, without running the step.
namespace phalanx {

/// Returns the sets of axes along which ranks have the same parameters or, if values are sharded, shards of them. There
/// are two if experts are sharded.
std::vector<AxisBits> axes_of_replicas(const Replica& replica);

/// Returns the operations by which the strategy synchronizes the buckets of each group. Throws ConfigError for a
/// strategy whose operations are not a function of the buckets (StepTraffic::kOther).
OperationCounts gradient_operations(const Replica& replica);

/// Returns the operations for norms, weights of batches, votes and unused parameters. `weighted`: batches have weights
/// of rows.
OperationCounts control_operations(const Replica& replica, const TrainConfig& train, bool weighted);

/// The operations of a step under a strategy that communicates during forward and backward.
struct StepOperations {
  OperationCounts gradients;  // of the strategy
  OperationCounts layers;     // of sharded layers, experts and batch norm
};

/// Separates the operations of such a step. The strategy scatters and gathers slices of buckets among replicas; sharded
/// layers communicate along other axes.
StepOperations separate(const OperationCounts& all, const Replica& replica);

}  // namespace phalanx
