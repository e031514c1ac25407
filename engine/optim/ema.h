// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "engine/optim/decorator.h"

namespace phalanx {

/// Keeps an exponential moving average of the values beside them (Polyak and Juditsky 1992), which often tests better:
///   average += (1 - d) * (values - average) after update t, d = min(decay, (1 + t) / (10 + t))
/// d starts small, so that the initial values are soon forgotten. Averages are state() of kind kMovingAverage; an
/// update that an inner optimizer leaves out leaves them as they are. Each rank averages what it updates.
class Ema final : public OptimizerDecorator {
 public:
  /// Makes values that ranks have changed in their slices those of all ranks: Synchronizer::share_values.
  using Share = std::function<void()>;

  /// `decay` below 1.
  Ema(std::unique_ptr<Optimizer> inner, double decay, Share share = [] {});

  void attach(std::vector<Slice> slices) override;  // averages begin as the values are then
  void update() override;
  std::vector<StateTensor> state() override;

  /// Calls `body` while the parameters of all ranks hold the averages; what they held is kept in the averages' place
  /// meanwhile, and stays there if `body` throws. No update in it. Collective where `share` is.
  void with_averages(const std::function<void()>& body);

 private:
  void exchange();

  double decay_;
  Share share_;
  std::vector<at::Tensor> averages_;  // by slice
};

}  // namespace phalanx
