// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/optim/optimizer.h"

namespace phalanx {

/// Turns sums over this rank's slices into sums over all parameters of the model, the same on all ranks. sums: [k]
/// double.
using SumOverSlices = std::function<void(at::Tensor& sums)>;

/// An optimizer that extends another one: it overrides some functions and forwards the rest.
class OptimizerDecorator : public Optimizer {
 public:
  explicit OptimizerDecorator(std::unique_ptr<Optimizer> inner) : inner_(std::move(inner)) {}

  Cut cut() const override { return inner_->cut(); }
  void attach(std::vector<Slice> slices) override {
    slices_ = slices;
    inner_->attach(std::move(slices));
  }
  void update() override { inner_->update(); }
  void exclude(const std::set<std::string>& parameters) override { inner_->exclude(parameters); }
  double learning_rate() const override { return inner_->learning_rate(); }
  void set_learning_rate(double rate) override { inner_->set_learning_rate(rate); }
  std::vector<StateTensor> state() override { return inner_->state(); }
  std::int64_t updates() const override { return inner_->updates(); }
  void set_updates(std::int64_t updates) override { inner_->set_updates(updates); }

 protected:
  Optimizer& inner() { return *inner_; }
  const Optimizer& inner() const { return *inner_; }
  std::vector<Slice>& slices() { return slices_; }

 private:
  std::unique_ptr<Optimizer> inner_;
  std::vector<Slice> slices_;
};

}  // namespace phalanx
