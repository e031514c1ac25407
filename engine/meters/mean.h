// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/meters/exact_sum.h"
#include "engine/meters/meter.h"

namespace phalanx {

/// A mean of values that are added without rounding.
class Mean {
 public:
  /// Adds the sum over values with a total weight of `weight`, which is usually their number. A sum may be added in
  /// several parts, of which only one has the weight.
  void add(double sum, double weight);

  /// Adds each element as a value. Any shape and floating-point dtype.
  void add(const at::Tensor& values);

  /// Like add(), for a sum that is `factor` times the sum of all elements of `parts`. These stay on their device until
  /// the mean is read, so that the caller does not wait for the device. Any shape and floating-point dtype. Must not be
  /// modified afterwards.
  void add_later(const at::Tensor& parts, double factor, double weight);

  /// Returns the mean over all values of all ranks, or nothing if no rank has values, and starts again. Collective.
  std::optional<double> take(Communicator& group);

  /// Returns [2 cells] int64, which can be added: the cells of the sum, then of the weight. See Meter.
  at::Tensor state();
  void merge_state(const at::Tensor& state);

 private:
  struct Pending {
    at::Tensor parts;  // [n]
    double factor;
  };

  void read_pending();

  std::vector<Pending> pending_;
  ExactSum sum_;
  ExactSum weight_;
};

/// A meter whose only metric is a mean.
class MeanMeter final : public Meter {
 public:
  /// Adds the measured values of a batch that has valid rows.
  using Measure = std::function<void(const Batch&, const Step::Result&, Mean&)>;
  using Finish = std::function<double(double mean)>;

  MeanMeter(
      std::string name, Measure measure, Finish finish = [](double mean) { return mean; })
      : name_(std::move(name)), measure_(std::move(measure)), finish_(std::move(finish)) {}

  void add(const Batch& batch, const Step::Result& result) override {
    if (batch.valid > 0) measure_(batch, result, mean_);
  }
  Metrics take(Communicator& group) override {
    const auto mean = mean_.take(group);
    return {{name_, mean ? finish_(*mean) : 0}};
  }
  State state() override { return {mean_.state()}; }
  void merge_state(const State& state) override { mean_.merge_state(state.at(0)); }

 private:
  std::string name_;
  Measure measure_;
  Finish finish_;
  Mean mean_;
};

}  // namespace phalanx
