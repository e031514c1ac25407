#pragma once

#include <cstdint>
#include <memory>

#include "engine/optim/decorator.h"

namespace phalanx {

/// Keeps an exponential moving average of the values beside them (Polyak and Juditsky 1992), which often tests better:
///   average += (1 - d) * (values - average) after update t, d = min(decay, (1 + t) / (10 + t))
/// d starts small, so that the initial values are soon forgotten. Averages are state() of kind "ema"; an update that an
/// inner optimizer leaves out leaves them as they are.
class Ema final : public OptimizerDecorator {
 public:
  /// `decay` below 1.
  Ema(std::unique_ptr<Optimizer> inner, double decay);

  void attach(std::vector<Slice> slices) override;  // averages begin as the values are then
  void update() override;
  std::vector<StateTensor> state() override;

  /// While it lives, the parameters hold the averages, and what they held is kept in their place. No update meanwhile.
  class InPlace {
   public:
    explicit InPlace(Ema& ema) : ema_(ema) { ema_.swap(); }
    ~InPlace() { ema_.swap(); }
    InPlace(const InPlace&) = delete;
    InPlace& operator=(const InPlace&) = delete;

   private:
    Ema& ema_;
  };

 private:
  void swap();

  double decay_;
  std::vector<at::Tensor> averages_;  // by slice
};

}  // namespace phalanx
