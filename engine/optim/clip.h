#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <string>

#include "engine/optim/decorator.h"

namespace phalanx {

/// Limits of gradients; 0: none.
struct ClipLimits {
  double norm = 0;   // Euclidean, of all gradients of all parameters together
  double value = 0;  // of each
};

/// Makes gradients smaller before an update when they are too large (Pascanu et al. 2013, arXiv:1211.5063): all by one
/// factor, limit / (norm + 1e-6), if their norm is above the limit, as torch.nn.utils.clip_grad_norm_ does; and then
/// each that is beyond [-value, value] to there. The norm is that over all ranks' slices, alike on all ranks.
///
/// Gradients whose norm is not finite have no direction: they reach the inner optimizer as they are, and finite() says
/// so.
class Clip final : public OptimizerDecorator {
 public:
  /// How much of a parameter's gradient counts here: 1 / n of one that n of the ranks that `sum` adds up have alike.
  using ShareOf = std::function<double(const std::string& parameter)>;

  Clip(
      std::unique_ptr<Optimizer> inner, ClipLimits limits, SumOverSlices sum,
      ShareOf share_of = [](const std::string&) { return 1.0; });

  const ClipLimits& limits() const { return limits_; }

  void update() override;  // collective where `sum` is, if there is a limit of the norm

  /// Of the gradients of the last update, before they were clipped; not a number before the first and where there is no
  /// limit of the norm.
  double norm() const { return norm_; }
  void set_norm(double norm) { norm_ = norm; }  // of a run that goes on

  /// Whether the gradients of the last update had a finite norm; true where there is no limit of the norm.
  bool finite() const { return finite_; }

 private:
  double global_norm();

  ClipLimits limits_;
  SumOverSlices sum_;
  ShareOf share_of_;
  double norm_ = std::numeric_limits<double>::quiet_NaN();
  bool finite_ = true;
};

}  // namespace phalanx
