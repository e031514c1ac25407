// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

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
  /// Parameters that other ranks have in other ways. `of`: which of `count` sums a parameter's gradient belongs to, all
  /// of which `sum` gets at once and which are added up after it. `share`: how much of it counts here; 1 / n of one
  /// that n of the ranks that `sum` adds up have alike.
  struct Parts {
    std::size_t count = 1;
    std::function<std::size_t(const std::string& parameter)> of = [](const std::string&) { return std::size_t{0}; };
    std::function<double(const std::string& parameter)> share = [](const std::string&) { return 1.0; };
  };

  /// `device`: of all ranks' slices, also where this one has none.
  Clip(std::unique_ptr<Optimizer> inner, ClipLimits limits, SumOverSlices sum)
      : Clip(std::move(inner), limits, std::move(sum), Parts(), at::kCPU) {}
  Clip(std::unique_ptr<Optimizer> inner, ClipLimits limits, SumOverSlices sum, Parts parts, c10::Device device);

  const ClipLimits& limits() const { return limits_; }

  void attach(std::vector<Slice> slices) override;

  /// Collective where `sum` is, if there is a limit of the norm; `sum` then gets sums on the slices' device. Does not
  /// wait for the device.
  void update() override;

  /// Of the gradients of the last update, before they were clipped; not a number before the first and where there is no
  /// limit of the norm. Waits for the device.
  double norm() const;
  void set_norm(double norm);  // of a run that goes on

  /// Whether the gradients of the last update had a finite norm; true where there is no limit of the norm.
  bool finite() const;

 private:
  // Gradients whose squares are summed on a device, by one kernel for all.
  struct OnDevice {
    std::vector<at::Tensor> gradients;  // a view for each parameter
    at::Tensor parts;                   // [gradients] int64: which sum it belongs to
    at::Tensor shares;                  // [gradients] double: how much of it counts
  };

  void clip_norm();
  at::Tensor sums_of_squares();

  ClipLimits limits_;
  SumOverSlices sum_;
  Parts parts_;
  c10::Device device_;
  OnDevice on_device_;  // empty: slices are on the CPU
  at::Tensor norm_;     // [] double, where the slices are
};

}  // namespace phalanx
