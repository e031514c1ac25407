// SPDX-License-Identifier: Apache-2.0
#include "engine/watch/watching.h"

namespace phalanx {

Watching::Watching(const WatchConfig& config, const CommunicatorPtr& world, const RunFolder& folder)
    : nan_guard_(config.nan_guard.every_steps, world), profiler_(config.profile, world, clock_, folder.trace()) {
  if (config.nvtx) nvtx_.emplace();
}

void Watching::attach_first(Engine& engine) {
  engine.on(Event::kSample, [this](State&) { clock_.lap(Phase::kData); });
  engine.on(Event::kUpdate, [this](State&) {
    clock_.lap(Phase::kCommunication);
    clock_.end_step();  // hooks may read the clock, so their time counts for the next step
  });
  nan_guard_.attach(engine);
}

void Watching::attach_last(Engine& engine, std::int64_t steps) {
  // Neither preparation nor tests are part of a step. After the end of an epoch the loader starts the next one.
  for (const auto event : {Event::kStart, Event::kEndEpoch}) {
    engine.on(event, [this](State&) { clock_.skip(); });
  }
  engine.on(Event::kUpdate, [this](State&) { clock_.lap(Phase::kHooks); });
  profiler_.attach(engine, steps);
}

}  // namespace phalanx
