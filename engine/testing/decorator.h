// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/optim/decorator.h"

namespace phalanx::testing {

/// An optimizer that subtracts gradients from values, records the gradients that it saw, and zeroes them.
class Recorder final : public Optimizer {
 public:
  void attach(std::vector<Slice> slices) override { slices_ = std::move(slices); }
  void update() override {
    ++updates_;
    seen.clear();
    for (auto& slice : slices_) {
      seen.push_back(slice.gradients.clone());
      slice.values.sub_(slice.gradients);
      slice.gradients.zero_();
    }
  }
  void exclude(const std::set<std::string>&) override {}
  double learning_rate() const override { return rate_; }
  void set_learning_rate(double rate) override { rate_ = rate; }
  std::int64_t updates() const override { return updates_; }
  void set_updates(std::int64_t updates) override { updates_ = updates; }

  std::vector<at::Tensor> seen;

 private:
  std::vector<Slice> slices_;
  double rate_ = 0.5;
  std::int64_t updates_ = 0;
};

/// Leaves sums unchanged, for tests in which one rank has all slices.
inline void no_other_slices(at::Tensor&) {}

}  // namespace phalanx::testing
