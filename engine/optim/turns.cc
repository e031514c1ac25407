// SPDX-License-Identifier: Apache-2.0
#include "engine/optim/turns.h"

#include <stdexcept>
#include <string>
#include <utility>

#include "framework/base/error.h"

namespace phalanx {

TurnOptimizer::TurnOptimizer(std::vector<std::unique_ptr<Optimizer>> optimizers, TurnOf turn_of,
                             const std::size_t& turn)
    : optimizers_(std::move(optimizers)), turn_of_(std::move(turn_of)), turn_(turn) {
  for (const auto& optimizer : optimizers_) rates_.push_back(optimizer->learning_rate());
}

Cut TurnOptimizer::cut() const {
  for (const auto& optimizer : optimizers_) {
    if (optimizer->cut() == Cut::kBetweenParameters) return Cut::kBetweenParameters;
  }
  return Cut::kAnywhere;
}

void TurnOptimizer::attach(std::vector<Slice> slices) {
  std::vector<std::vector<Slice>> parts(optimizers_.size());
  slices_.assign(optimizers_.size(), {});
  for (std::size_t i = 0; i < slices.size(); ++i) {
    if (slices[i].segments.empty()) continue;  // a shard without parameters
    const auto turn = turn_of_(slices[i].segments.front().name);
    for (const auto& segment : slices[i].segments) {
      if (turn_of_(segment.name) != turn)
        throw std::logic_error("a slice has parameters of two turns: " + segment.name);
    }
    parts[turn].push_back(std::move(slices[i]));
    slices_[turn].push_back(i);
  }
  for (std::size_t turn = 0; turn < parts.size(); ++turn) optimizers_[turn]->attach(std::move(parts[turn]));
}

void TurnOptimizer::set_learning_rate(double rate) {
  for (std::size_t turn = 0; turn < optimizers_.size(); ++turn) {
    optimizers_[turn]->set_learning_rate(turn == 0 ? rate : rates_[turn] * (rates_[0] > 0 ? rate / rates_[0] : 1));
  }
}

std::vector<StateTensor> TurnOptimizer::state() {
  std::vector<StateTensor> all;
  for (std::size_t turn = 0; turn < optimizers_.size(); ++turn) {
    for (auto& one : optimizers_[turn]->state()) {
      one.slice = slices_[turn].at(one.slice);
      all.push_back(std::move(one));
    }
  }
  return all;
}

std::int64_t TurnOptimizer::updates() const {
  std::int64_t sum = 0;
  for (const auto& optimizer : optimizers_) sum += optimizer->updates();
  return sum;
}

void TurnOptimizer::set_updates(std::int64_t updates) {
  const auto turns = static_cast<std::int64_t>(optimizers_.size());
  for (std::int64_t turn = 0; turn < turns; ++turn) {
    optimizers_[static_cast<std::size_t>(turn)]->set_updates((updates - turn + turns - 1) / turns);
  }
}

std::vector<std::int64_t> TurnOptimizer::updates_by_turn() const {
  std::vector<std::int64_t> updates;
  for (const auto& optimizer : optimizers_) updates.push_back(optimizer->updates());
  return updates;
}

void TurnOptimizer::set_updates_by_turn(const std::vector<std::int64_t>& updates) {
  if (updates.size() != optimizers_.size()) {
    throw DataError("the task has " + std::to_string(optimizers_.size()) +
                    " turns, but the checkpoint has updates of " + std::to_string(updates.size()));
  }
  for (std::size_t turn = 0; turn < updates.size(); ++turn) optimizers_[turn]->set_updates(updates[turn]);
}

}  // namespace phalanx
