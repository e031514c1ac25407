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
  /// Waits for the device after update_unless().
  std::int64_t updates() const final;
  void set_updates(std::int64_t updates) final;

 protected:
  /// A kind of state with one number for each element, stored as a tensor like the values of the slice.
  struct Kind {
    std::string name;
    double initial = 0;
  };

  /// The settings that all elements of a group share.
  struct GroupRates {
    double learning_rate, weight_decay;
    std::int64_t update;  // number of the update, from 1; after update_unless() only known to be above 1
  };

  /// Returns the kinds of state that all slices have. The result does not change after construction.
  virtual std::vector<Kind> kinds() const = 0;

  const std::vector<Slice>& all_slices() const { return slices_; }
  const std::vector<std::vector<at::Tensor>>& state_by_kind() const { return state_; }
  const std::set<std::string>& excluded() const { return excluded_; }
  const GroupTable& groups() const { return groups_; }
  GroupRates rates_of(std::size_t group) const;
  void count_update() { ++updates_; }

  /// Notes that the last update counts only if `skip`, see update_unless(), is 0.
  void count_unless(const at::Tensor& skip);

  /// Returns true after the first update. Optimizers treat the first one differently, so the host must know it.
  bool has_updated() const { return updates_ > 0; }

  /// Returns the number of updates that did not count, [] float32, on the device of `values`: the same tensor in every
  /// update, as recorded updates require.
  const at::Tensor& skipped_on(const at::Tensor& values);

  /// Notes that updates may have been added to skipped_on() since updates() has read it.
  void note_skips() { has_skips_ = true; }

  /// Returns the number of the current update as LibTorch's fused kernels need it (fused_step), on the device of
  /// `values`. Does not wait for the device.
  at::Tensor update_on_device(const at::Tensor& values) const;

 private:
  double learning_rate_, weight_decay_;
  GroupTable groups_;
  std::vector<Slice> slices_;
  std::vector<std::vector<at::Tensor>> state_;  // by kind, then slice
  std::set<std::string> excluded_;
  mutable std::int64_t updates_ = 0;  // includes `skipped_`, which updates() reads and subtracts
  at::Tensor skipped_;                // [] float32, on the slices' device; undefined before it is needed
  mutable bool has_skips_ = false;    // false: `skipped_` is 0 or undefined
};

}  // namespace phalanx
