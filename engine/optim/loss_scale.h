// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/optim/decorator.h"

namespace phalanx {

/// Defines how a loss scale changes.
struct LossScaleConfig {
  double initial = 65536;
  double growth = 2;
  double backoff = 0.5;
  std::int64_t growth_interval = 2000;

  template <class V>
  void visit(V& v) {
    v("initial", initial, "initial scale", config::above(0));
    v("growth", growth, "factor by which the scale grows after growth_interval finite updates", config::at_least(1));
    v("backoff", backoff, "factor by which the scale shrinks after non-finite gradients", config::between(0, 1));
    v("growth_interval", growth_interval, "finite updates in a row after which the scale grows", config::at_least(1));
  }
};

/// Dynamic loss scaling (Micikevicius et al. 2018, arXiv:1710.03740): fp16 gradients of a loss that was multiplied by
/// scale() do not vanish, but may overflow. An update divides them by the scale. If a gradient of any rank is not
/// finite, all ranks skip the update (updates() does not change), zero their gradients and reduce the scale. After
/// `growth_interval` finite updates in a row they increase it.
class LossScale final : public OptimizerDecorator {
 public:
  LossScale(std::unique_ptr<Optimizer> inner, const LossScaleConfig& config, SumOverSlices sum);

  /// Returns the factor for the loss of the next step.
  double scale() const { return scale_; }

  /// Returns true if the last update was skipped.
  bool skipped() const { return skipped_; }

  void attach(std::vector<Slice> slices) override;

  /// Collective if `sum` is. Throws Error if the scale has become so small that it cannot be the reason for non-finite
  /// gradients.
  void update() override;

  /// Returns the number of updates skipped since attach().
  std::int64_t skipped_updates() const { return skipped_updates_; }

  /// Returns the state other than state() that the next updates depend on: the scale, the number of finite updates
  /// since it changed, and skipped_updates(). The same on all ranks. set_progress() throws DataError unless it gets
  /// three numbers.
  std::vector<double> progress() const;
  void set_progress(const std::vector<double>& progress);

 private:
  bool unscale();
  void shrink();

  LossScaleConfig config_;
  SumOverSlices sum_;
  double scale_;
  std::int64_t good_ = 0;  // finite updates since the scale changed
  std::int64_t skipped_updates_ = 0;
  bool skipped_ = false;
};

}  // namespace phalanx
