// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/optim/optimizer.h"

namespace phalanx {

/// Turns sums over this rank's slices into sums over all parameters of the model, the same on all ranks. sums: [k]
/// double.
using SumOverSlices = std::function<void(at::Tensor& sums)>;

/// An optimizer that extends another one: it overrides some functions and forwards the rest. A graph can contain its
/// updates only if it overrides why_not_recorded().
class OptimizerDecorator : public Optimizer {
 public:
  explicit OptimizerDecorator(std::unique_ptr<Optimizer> inner) : inner_(std::move(inner)) {}

  Cut cut() const override { return inner_->cut(); }
  void attach(std::vector<Slice> slices) override {
    slices_ = slices;
    inner_->attach(std::move(slices));
  }
  void update() override { inner_->update(); }
  void record(const std::optional<at::Tensor>& skip) override { inner_->record(skip); }
  void prepare_replay() override { inner_->prepare_replay(); }
  void replayed() override { inner_->replayed(); }
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
