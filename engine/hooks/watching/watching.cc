// SPDX-License-Identifier: Apache-2.0
#include "engine/hooks/watching/watching.h"

namespace phalanx {

Watching::Watching(const WatchConfig& config, const CommunicatorPtr& world, const RunFolder& folder,
                   std::int64_t digests)
    : nan_guard_(config.nan_guard.every_steps, world),
      gradient_norms_(config.gradient_norms),
      profiler_(config.profile, world, clock_, folder.trace()),
      digests_(digests, folder.digests(), world->rank()) {
  if (config.nvtx) nvtx_.emplace();
}

void Watching::attach(Engine& engine, const RunLength& length) {
  engine.on(Event::kSample, HookPhase::kFirst, [this](State&) { clock_.lap(Phase::kData); });
  engine.on(Event::kUpdate, HookPhase::kFirst, [this](State&) {
    clock_.lap(Phase::kCommunication);
    clock_.end_step();  // hooks may read the clock, so their time counts for the next step
  });
  nan_guard_.attach(engine);
  // Neither preparation nor tests are part of a step. After the end of an epoch the loader starts the next one.
  for (const auto event : {Event::kStart, Event::kEndEpoch}) {
    engine.on(event, HookPhase::kLast, [this](State&) { clock_.skip(); });
  }
  engine.on(Event::kUpdate, HookPhase::kLast, [this](State&) { clock_.lap(Phase::kHooks); });
  profiler_.attach(engine, length);
  digests_.attach(engine);
}

}  // namespace phalanx
