// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/optim/decorator.h"
#include "engine/optim/delayed_number.h"

namespace phalanx {

/// Defines how a loss scale changes.
struct LossScaleConfig {
  static constexpr double kLargestInitial = 3e38;  // a float32 cannot be much larger

  double initial = 65536;
  double growth = 2;
  double backoff = 0.5;
  std::int64_t growth_interval = 2000;

  template <class V>
  void visit(V& v) {
    v("initial", initial, "initial scale", {.min = 0, .max = kLargestInitial, .exclusive = true});
    v("growth", growth, "factor by which the scale grows after growth_interval finite updates", config::at_least(1));
    v("backoff", backoff, "factor by which the scale shrinks after non-finite gradients", config::between(0, 1));
    v("growth_interval", growth_interval, "finite updates in a row after which the scale grows",
      config::between(1, std::numeric_limits<std::int32_t>::max()));
  }
};

/// Dynamic loss scaling (Micikevicius et al. 2018, arXiv:1710.03740): fp16 gradients of a loss that was multiplied by
/// scale() do not vanish, but may overflow. An update divides them by the scale. If a gradient of any rank is not
/// finite, all ranks skip the update (updates() does not change), zero their gradients and reduce the scale. After
/// `growth_interval` finite updates in a row they increase it. The scale is a float32.
///
/// On a device, the decision stays there if the inner optimizer permits it (Optimizer::can_skip_on_device()): an update
/// does not wait for the device then.
class LossScale final : public OptimizerDecorator {
 public:
  /// Turns [1] float32 into the largest of all ranks.
  using LargestOfRanks = std::function<void(at::Tensor&)>;

  /// `device` is the device of all ranks' slices, even if this rank has no slices; `largest` gets tensors of this
  /// device.
  LossScale(std::unique_ptr<Optimizer> inner, const LossScaleConfig& config, LargestOfRanks largest,
            c10::Device device = c10::kCPU);

  /// Returns the factor for the loss of the next step: [] float32, on the device. Updates change it in place.
  const at::Tensor& scale_on_device() const { return scale_; }

  /// Returns the same factor as a number. Waits for the device.
  double scale() const;

  /// Returns true if the last update was skipped. Waits for the device.
  bool skipped() const;

  void attach(std::vector<Slice> slices) override;

  /// Collective if `largest` is. Throws Error if the scale has become so small that it cannot be the reason for
  /// non-finite gradients, on all ranks in the same update. On a device, this may be noticed some updates later.
  void update() override;

  std::string why_not_recorded() const override { return inner().why_not_recorded(); }

  /// Records an update that is skipped as described above. `skip` must be empty.
  void record(const std::optional<at::Tensor>& skip) override;
  void replayed() override;  // throws Error like update()

  /// Returns the number of updates skipped since attach(). Waits for the device.
  std::int64_t skipped_updates() const;

  /// Returns the state other than state() that the next updates depend on: the scale, the number of finite updates
  /// since it changed, and skipped_updates(). The same on all ranks. Waits for the device.
  std::vector<double> progress() const;

  /// Continues from progress() of an object that may have had another config: if more updates in a row were finite than
  /// `growth_interval` allows, the scale grows after the next one. Throws DataError unless it gets three numbers.
  void set_progress(const std::vector<double>& progress);

 private:
  void unscale();
  void update_inner();
  void adapt();
  void check(bool waits);

  LossScaleConfig config_;
  LargestOfRanks largest_;
  c10::Device device_;
  at::Tensor scale_;    // [] float32; like the other tensors, on device_
  at::Tensor skip_;     // [] float32: 1 if the last update was skipped, 0 otherwise
  at::Tensor skipped_;  // [] float64: number of skipped updates
  at::Tensor good_;     // [] int32: finite updates since the scale changed
  DelayedNumber delayed_scale_{};
  std::int64_t unchecked_ = 0;  // updates since delayed_scale_ was requested
};

}  // namespace phalanx
