// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "engine/optim/group_table.h"
#include "engine/optim/optimizer.h"

namespace phalanx {

/// The base of optimizers that update slices themselves, unlike decorators: it keeps the slices, their state, and the
/// settings of the parameter groups.
class SliceOptimizer : public Optimizer {
 public:
  SliceOptimizer(double learning_rate, double weight_decay, const ParameterGroups& groups)
      : learning_rate_(learning_rate), weight_decay_(weight_decay), groups_(groups) {}

  void attach(std::vector<Slice> slices) override;
  void exclude(const std::set<std::string>& parameters) override { excluded_ = parameters; }
  double learning_rate() const final { return learning_rate_; }
  void set_learning_rate(double rate) final { learning_rate_ = rate; }
  std::vector<StateTensor> state() override;
  std::int64_t updates() const final { return updates_; }
  void set_updates(std::int64_t updates) final { updates_ = updates; }

 protected:
  /// A kind of state with one number for each element, stored as a tensor like the values of the slice.
  struct Kind {
    std::string name;
    double initial = 0;
  };

  /// The settings that all elements of a group share.
  struct GroupRates {
    double learning_rate, weight_decay;
    std::int64_t update;  // number of the update, from 1
  };

  /// Returns the kinds of state that all slices have. The result does not change after construction.
  virtual std::vector<Kind> kinds() const = 0;

  const std::vector<Slice>& all_slices() const { return slices_; }
  const std::vector<std::vector<at::Tensor>>& state_by_kind() const { return state_; }
  const std::set<std::string>& excluded() const { return excluded_; }
  const GroupTable& groups() const { return groups_; }
  GroupRates rates_of(std::size_t group) const;
  void count_update() { ++updates_; }

 private:
  double learning_rate_, weight_decay_;
  GroupTable groups_;
  std::vector<Slice> slices_;
  std::vector<std::vector<at::Tensor>> state_;  // by kind, then slice
  std::set<std::string> excluded_;
  std::int64_t updates_ = 0;
};

}  // namespace phalanx
