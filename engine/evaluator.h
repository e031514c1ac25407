// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "datasets/loader.h"
#include "engine/hooks.h"
#include "framework/parallel/step.h"

namespace phalanx {

/// Passes over a dataset without gradients or updates. Everything that measures is a hook.
class Evaluator {
 public:
  explicit Evaluator(Step& step) : step_(step) {}  // `step` must outlive it

  /// Registers a hook, as Engine::on() does. Events are on_start, on_sample, on_forward, on_forward_criterion and
  /// on_end.
  void on(Event event, HookPhase phase, Hooks::Hook hook) { hooks_.on(event, phase, std::move(hook)); }
  void on(Event event, Hooks::Hook hook) { on(event, HookPhase::kUser, std::move(hook)); }

  /// Makes one pass over the loader's epoch 0. Hooks see `state` with each batch and its result. Collective.
  void run(Loader& loader, State state) const;

 private:
  Step& step_;
  Hooks hooks_;
};

}  // namespace phalanx
