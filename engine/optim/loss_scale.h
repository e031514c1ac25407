// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/optim/decorator.h"

namespace phalanx {

/// How a loss scale changes.
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

/// Dynamic loss scaling (Micikevicius et al. 2018, arXiv:1710.03740): fp16 gradients of a loss that was multiplied with
/// scale() do not vanish, but may overflow. An update divides them by the scale. When one of any rank is not finite,
/// all ranks leave the update out (updates() stays as it is), zero their gradients and make the scale smaller; after
/// `growth_interval` good updates in a row they make it larger.
class LossScale final : public OptimizerDecorator {
 public:
  LossScale(std::unique_ptr<Optimizer> inner, const LossScaleConfig& config, SumOverSlices sum);

  /// What the loss of the next step is multiplied with.
  double scale() const { return scale_; }

  /// Whether the last update was left out.
  bool skipped() const { return skipped_; }

  void attach(std::vector<Slice> slices) override;

  /// Collective where `sum` is. Throws Error when the scale is so small that the gradients are not finite for another
  /// reason.
  void update() override;

  /// Updates left out since attach().
  std::int64_t left_out() const { return left_out_; }

  /// What the next updates depend on beside state(): the scale, the good updates since it changed, and left_out().
  /// Alike on all ranks. set_progress() throws DataError where these are not three numbers.
  std::vector<double> progress() const;
  void set_progress(const std::vector<double>& progress);

 private:
  bool unscale();
  void shrink();

  LossScaleConfig config_;
  SumOverSlices sum_;
  double scale_;
  std::int64_t good_ = 0;  // updates since it changed
  std::int64_t left_out_ = 0;
  bool skipped_ = false;
};

}  // namespace phalanx
