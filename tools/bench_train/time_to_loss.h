// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace phalanx::bench_train {

/// Measures how long a system trains until its loss is low: until the first step after which the mean training loss of
/// the last kWindow steps is below the target. Steps and time are counted from the first step, warm-up included.
class TimeToLoss {
 public:
  static constexpr std::size_t kWindow = 20;

  /// loss: the target; 0: no target, which is never reached.
  explicit TimeToLoss(double loss) : loss_(loss) {}

  /// Adds steps with these losses that took `seconds` together. All steps are assumed to take the same time.
  void add(const std::vector<double>& losses, double seconds);

  /// Returns the losses of all steps so far; empty if there is no target.
  const std::vector<double>& losses() const { return losses_; }

  bool arrived() const { return steps_.has_value(); }
  bool under_way() const { return loss_ > 0 && !arrived(); }
  std::optional<double> seconds() const { return seconds_; }
  std::optional<std::int64_t> steps() const { return steps_; }

 private:
  double loss_;
  std::vector<double> losses_;
  double seconds_before_ = 0;
  std::optional<double> seconds_;
  std::optional<std::int64_t> steps_;
};

}  // namespace phalanx::bench_train
