// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace phalanx::bench_train {

/// How long a system trains until its loss is low: the first step after which the mean training loss of the last
/// kWindow steps is below the one wanted. The steps are counted from the first one, warm-up included, and so is time.
class TimeToLoss {
 public:
  static constexpr std::size_t kWindow = 20;

  /// loss: 0: is not asked for, and never arrives.
  explicit TimeToLoss(double loss) : loss_(loss) {}

  /// Steps with these losses, which have taken `seconds` together, one as long as the other.
  void add(const std::vector<double>& losses, double seconds);

  /// Of all steps so far; none where no loss is asked for.
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
