// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "engine/config/watch_config.h"
#include "engine/engine.h"
#include "engine/hooks/watching/norm_outliers.h"
#include "framework/base/metrics.h"
#include "framework/comm/communicator.h"
#include "framework/partition/flat_parameters.h"

namespace phalanx {

/// Measures the norm of each rank's own gradients in every step, before they are combined with those of other ranks,
/// and names ranks that stand out (NormOutliers). A wrong gradient makes all replicas wrong in the same way, so nothing
/// else tells which rank it came from.
///
/// The norm of a rank with several virtual shards is that of all their gradients together: the root of the sum of the
/// squared norms of the shards.
///
/// The cost is a pass over the gradients in each step, and after every n-th step an all_gather of 8 n bytes per rank.
/// Nothing waits for a device before that.
class GradientNorms {
 public:
  explicit GradientNorms(const GradientNormsConfig& config) : config_(config) {}

  /// Returns the function that strategies call with gradients that they take away before backward is over (see
  /// StrategyContext::local_gradients); null if nothing is measured. It measures nothing until attach(). Must not be
  /// called after this object is destroyed.
  std::function<void(const at::Tensor& gradients)> observer();

  /// Adds the hooks, and exchanges the numbers of the ranks in the world. `parameters` are those of the replica, of
  /// which the ranks of `replicas` have copies, and must outlive the engine. All ranks log a
  /// warning if one stands out. Collective.
  void attach(Engine& engine, const FlatParameters& parameters, const CommunicatorPtr& replicas, int world_rank);

  /// Returns gradient_outliers, the number of norms that stood out so far on any rank, and gradient_norm_ratio, the
  /// largest norm of a rank in the last compared step divided by the smallest. Empty before the first comparison.
  Metrics metrics() const;

 private:
  struct OfStep {
    std::int64_t step = 0;
    std::vector<at::Tensor> norms{};  // of parts of the gradients, each [], on the gradients' device
  };

  void add(const at::Tensor& gradients);
  void add_all(const FlatParameters& parameters);
  void compare();
  void warn(std::int64_t step, const NormOutliers::Outlier& outlier) const;

  GradientNormsConfig config_;
  CommunicatorPtr replicas_{};
  std::vector<int> ranks_{};  // in the world, of the ranks of replicas_
  std::optional<NormOutliers> outliers_{};
  std::vector<at::Tensor> current_{};
  std::vector<OfStep> steps_{};  // not compared yet
  std::int64_t found_ = 0;
  std::optional<double> ratio_{};
};

}  // namespace phalanx
