// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "engine/optim/optimizer.h"

namespace phalanx {

/// Several optimizers that take turns: each updates the parameters of its own turn, and update() is that of the turn it
/// is. The gradients of the others are left alone. Slices must not hold parameters of two turns.
class TurnOptimizer final : public Optimizer {
 public:
  using TurnOf = std::function<std::size_t(const std::string& parameter)>;

  /// One optimizer for each turn. `turn` is whose turn it is, and changed by others; it must outlive this.
  TurnOptimizer(std::vector<std::unique_ptr<Optimizer>> optimizers, TurnOf turn_of, const std::size_t& turn);

  Cut cut() const override;
  void attach(std::vector<Slice> slices) override;
  void update() override { optimizers_[turn_]->update(); }

  /// Applies to the optimizer of the current turn, as update() does.
  void leave_out(const std::set<std::string>& parameters) override { optimizers_[turn_]->leave_out(parameters); }

  /// That of the first turn. Setting it changes those of the others in proportion.
  double learning_rate() const override { return optimizers_.front()->learning_rate(); }
  void set_learning_rate(double rate) override;

  std::vector<StateTensor> state() override;

  /// Of all turns together. Set, they are shared out as if no turn had been left out.
  std::int64_t updates() const override;
  void set_updates(std::int64_t updates) override;

  /// Returns the number of updates of each turn, in their order. set_updates_by_turn() throws DataError for another
  /// number of turns.
  std::vector<std::int64_t> updates_by_turn() const;
  void set_updates_by_turn(const std::vector<std::int64_t>& updates);

 private:
  std::vector<std::unique_ptr<Optimizer>> optimizers_;
  TurnOf turn_of_;
  const std::size_t& turn_;
  std::vector<double> rates_;                     // as they were made, by turn
  std::vector<std::vector<std::size_t>> slices_;  // by turn: which of those that were attached
};

}  // namespace phalanx
