// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "datasets/loader.h"
#include "engine/hooks.h"
#include "engine/optim/optimizer.h"
#include "engine/strategies/strategy.h"
#include "framework/parallel/step.h"
#include "framework/partition/flat_parameters.h"

namespace phalanx {

/// The only training loop. The variable parts are passed to it, and observers are hooks.
class Engine {
 public:
  using Hook = Hooks::Hook;

  /// All arguments must outlive the engine.
  Engine(Step& step, Optimizer& optimizer, Strategy& strategy)
      : step_(step), optimizer_(optimizer), strategy_(strategy) {}

  /// Registers a hook. Hooks of the same event are called by phase, and within a phase in the order of registration.
  /// Without a phase they belong to HookPhase::kUser.
  void on(Event event, HookPhase phase, Hook hook) { hooks_.on(event, phase, std::move(hook)); }
  void on(Event event, Hook hook) { on(event, HookPhase::kUser, std::move(hook)); }
  void on(const std::string& event, Hook hook) { on(event_from_name(event), std::move(hook)); }

  /// Trains from `state`, which hooks of on_start may replace by the state of an earlier run, to the end of its last
  /// epoch or until a hook sets `stop`. Collective.
  State train(const FlatParameters& parameters, Loader& loader, State state);

  /// Returns the slices that this rank updates. Valid from on_start on.
  const std::vector<Slice>& slices() const { return slices_; }

 private:
  Step& step_;
  Optimizer& optimizer_;
  Strategy& strategy_;
  std::vector<Slice> slices_;
  Hooks hooks_;
};

}  // namespace phalanx
