// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "engine/optim/decorator.h"

namespace phalanx {

/// Keeps an exponential moving average of the values (Polyak and Juditsky 1992), which often gives better test results:
///   average += (1 - d) * (values - average) after update t, d = min(decay, (1 + t) / (10 + t))
/// d starts small, so that the initial values quickly lose their weight. Averages are state() of kind kMovingAverage.
/// If the inner optimizer skips an update, they do not change. Each rank averages the values that it updates.
class Ema final : public OptimizerDecorator {
 public:
  /// Gives all ranks the values that each has changed in its slices: Strategy::gather_slices.
  using Share = std::function<void()>;

  /// `decay` must be below 1.
  Ema(std::unique_ptr<Optimizer> inner, double decay, Share share = [] {});

  void attach(std::vector<Slice> slices) override;  // averages start as the current values
  void update() override;
  std::string why_not_recorded() const override {
    return "train.ema_decay computes the weight of an average on the host";
  }
  std::vector<StateTensor> state() override;

  /// Calls `body` while the parameters of all ranks hold the averages. The averages' tensors hold the parameters'
  /// values during that time, and keep them if `body` throws. No update may happen in `body`. Collective if `share` is.
  void with_averages(const std::function<void()>& body);

 private:
  void exchange();

  double decay_;
  Share share_;
  std::vector<at::Tensor> averages_;  // by slice
};

}  // namespace phalanx
