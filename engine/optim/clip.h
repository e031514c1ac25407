// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/optim/decorator.h"

namespace phalanx {

/// Limits on gradients; 0 means no limit.
struct ClipLimits {
  double norm = 0;   // on the Euclidean norm of all parameters' gradients together
  double value = 0;  // on the absolute value of each element
};

/// Reduces gradients that are too large before an update (Pascanu et al. 2013, arXiv:1211.5063). If their norm is above
/// the limit, all are multiplied by one factor, limit / (norm + 1e-6), as in torch.nn.utils.clip_grad_norm_. Then each
/// element is clamped to [-value, value]. The norm covers the slices of all ranks and is the same on all of them.
///
/// Gradients with a non-finite norm have no direction. They are passed to the inner optimizer unchanged, and finite()
/// returns false.
class Clip final : public OptimizerDecorator {
 public:
  /// Describes parameters that other ranks hold differently. There are `count` sums, which `sum` reduces in one call
  /// and which are added up afterwards. `of` returns the sum that a parameter's gradient belongs to. `share` returns
  /// the fraction of it that counts on this rank: 1 / n for a parameter that n of the ranks hold completely.
  struct Parts {
    std::size_t count = 1;
    std::function<std::size_t(const std::string& parameter)> of = [](const std::string&) { return std::size_t{0}; };
    std::function<double(const std::string& parameter)> share = [](const std::string&) { return 1.0; };
  };

  /// `device` is the device of all ranks' slices, even if this rank has no slices.
  Clip(std::unique_ptr<Optimizer> inner, ClipLimits limits, SumOverSlices sum)
      : Clip(std::move(inner), limits, std::move(sum), Parts(), at::kCPU) {}
  Clip(std::unique_ptr<Optimizer> inner, ClipLimits limits, SumOverSlices sum, Parts parts, c10::Device device);

  const ClipLimits& limits() const { return limits_; }

  void attach(std::vector<Slice> slices) override;

  /// Collective if `sum` is and the norm is limited; `sum` then gets tensors on the slices' device. Does not wait for
  /// the device.
  void update() override;

  bool can_skip_on_device() const override { return inner().can_skip_on_device(); }
  void update_unless(const at::Tensor& skip) override;  // a skipped update leaves norm() as it was

  std::string why_not_recorded() const override { return inner().why_not_recorded(); }
  void record(const std::optional<at::Tensor>& skip) override;

  /// Returns the norm of the last update's gradients before clipping. NaN before the first update, or if the norm is
  /// not limited. Waits for the device.
  double norm() const;
  void set_norm(double norm);  // restores the norm when a run resumes

  /// Returns true if the last update's gradients had a finite norm, or if the norm is not limited.
  bool finite() const;

 private:
  // Gradients on a device, whose squares are summed by one kernel for all of them.
  struct OnDevice {
    std::vector<at::Tensor> gradients;  // a view for each parameter
    at::Tensor parts;                   // [gradients] int64: the sum that each belongs to
    at::Tensor shares;                  // [gradients] double: the fraction of each that counts
  };

  void clip(const std::optional<at::Tensor>& skip);
  void clip_norm(const std::optional<at::Tensor>& skip);
  at::Tensor sums_of_squares();

  ClipLimits limits_;
  SumOverSlices sum_;
  Parts parts_;
  c10::Device device_;
  OnDevice on_device_;  // empty if slices are on the CPU
  at::Tensor norm_;     // [] double, on device_, always at the same address
};

}  // namespace phalanx
