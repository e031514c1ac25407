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

/// Combines one optimizer per turn: each updates the parameters of one turn, and update() calls the optimizer of the
/// current turn. Gradients for other turns are not touched. A slice must not hold parameters of two turns.
class TurnOptimizer final : public Optimizer {
 public:
  using TurnOf = std::function<std::size_t(const std::string& parameter)>;

  /// `optimizers` has one entry for each turn. `turn` is the current turn, which other code changes; it must outlive
  /// this object.
  TurnOptimizer(std::vector<std::unique_ptr<Optimizer>> optimizers, TurnOf turn_of, const std::size_t& turn);

  Cut cut() const override;
  void attach(std::vector<Slice> slices) override;
  void update() override { optimizers_[turn_]->update(); }

  /// Applies to the optimizer of the current turn, as update() does.
  void exclude(const std::set<std::string>& parameters) override { optimizers_[turn_]->exclude(parameters); }

  /// The learning rate of the first turn. Setting it changes the other turns' rates in proportion.
  double learning_rate() const override { return optimizers_.front()->learning_rate(); }
  void set_learning_rate(double rate) override;

  std::vector<StateTensor> state() override;

  /// The total over all turns. Setting it divides the updates as if no turn had been skipped.
  std::int64_t updates() const override;
  void set_updates(std::int64_t updates) override;

  /// Returns the number of updates of each turn, in order. set_updates_by_turn() throws DataError if the number of
  /// turns differs.
  std::vector<std::int64_t> updates_by_turn() const;
  void set_updates_by_turn(const std::vector<std::int64_t>& updates);

 private:
  std::vector<std::unique_ptr<Optimizer>> optimizers_;
  TurnOf turn_of_;
  const std::size_t& turn_;
  std::vector<double> rates_;                     // initial rates, by turn
  std::vector<std::vector<std::size_t>> slices_;  // by turn: indices of its slices in attach()
};

}  // namespace phalanx
