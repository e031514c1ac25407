#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "datasets/loader.h"
#include "engine/event.h"
#include "engine/optim/optimizer.h"
#include "engine/sync/synchronizer.h"
#include "framework/parallel/flat_parameters.h"
#include "framework/parallel/step.h"

namespace phalanx {

/// What hooks see and may change.
struct State {
  std::int64_t epoch = 0;   // of the current step, from 0
  std::int64_t epochs = 0;  // to train in all
  std::int64_t step = 0;    // updates done
  std::int64_t cursor = 0;  // batches taken of the epoch
  bool training = true;     // false while testing
  bool stop = false;        // set by a hook: leave after this step; all ranks must set it after the same step
  Batch batch{};
  Step::Result result{};
};

/// The only training loop. What varies is given to it; what watches is a hook.
class Engine {
 public:
  using Hook = std::function<void(State&)>;

  /// All must outlive the engine.
  Engine(Step& step, Optimizer& optimizer, Synchronizer& synchronizer)
      : step_(step), optimizer_(optimizer), synchronizer_(synchronizer) {}

  /// Hooks of one event are called in the order of their registration.
  void on(Event event, Hook hook) { hooks_[static_cast<int>(event)].push_back(std::move(hook)); }
  void on(const std::string& event, Hook hook) { on(event_from_name(event), std::move(hook)); }

  /// From `state` on, which hooks of on_start may set to where another run was, to the end of its last epoch or until
  /// a hook says stop. Collective.
  State train(const FlatParameters& parameters, Loader& loader, State state);

  /// What this rank updates, from on_start on.
  const std::vector<Slice>& slices() const { return slices_; }

  /// One pass without updates. Fires on_start, on_sample, on_forward, on_forward_criterion and on_end of the hooks
  /// registered with on_test(): those of training do not see it.
  void test(Loader& loader, State state);
  void on_test(Event event, Hook hook) { test_hooks_[static_cast<int>(event)].push_back(std::move(hook)); }

 private:
  using Hooks = std::array<std::vector<Hook>, kEvents>;

  static void emit(const Hooks& hooks, Event event, State& state) {
    for (const auto& hook : hooks[static_cast<int>(event)]) hook(state);
  }
  static Step::Watch watch(const Hooks& hooks, State& state);

  Step& step_;
  Optimizer& optimizer_;
  Synchronizer& synchronizer_;
  std::vector<Slice> slices_;
  Hooks hooks_, test_hooks_;
};

}  // namespace phalanx
