// SPDX-License-Identifier: Apache-2.0
#include "engine/hooks/watching/profiler.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/comm/operations/measured_inputs.h"
#include "framework/comm/texts.h"
#include "framework/observe/best_effort.h"
#include "framework/observe/monotonic_clock.h"
#include "framework/observe/trace/clock_offset.h"
#include "framework/observe/trace/operation_trace.h"

namespace phalanx {
namespace {

constexpr const char* kSteps = "steps";
constexpr const char* kPhaseLane = "phases";

std::int64_t of_rank_0(std::int64_t value, Communicator& world) {
  at::Tensor shared = at::empty({1}, at::kLong);
  auto& number = *shared.data_ptr<std::int64_t>();
  number = value;
  const MeasuredInputs measured;
  world.broadcast(shared, 0).wait();
  return number;
}

// Returns the fixed lanes, and then others in the order of events: operations may have more than one lane.
std::vector<std::string> lanes_of(const std::vector<TraceEvent>& events) {
  std::vector<std::string> lanes{kSteps, kPhaseLane, kOperatorsLane, kOperationsLane};
  for (const auto& event : events) {
    if (std::ranges::find(lanes, event.lane) == lanes.end()) lanes.push_back(event.lane);
  }
  return lanes;
}

}  // namespace

void Profiler::attach(Engine& engine, const RunLength& length) {
  if (config_.from == 0) return;
  engine.on(Event::kStart, HookPhase::kLast, [this, &length](State& state) {
    if (config_.from > length.steps) {
      throw ConfigError("watch.profile.from is " + std::to_string(config_.from) + ", but the run has " +
                        std::to_string(length.steps) + " steps");
    }
    if (state.step >= config_.from - 1 && state.step < config_.to) begin();
  });
  engine.on(Event::kUpdate, HookPhase::kLast, [this](State& state) {
    if (recording_) end_step(state);
    if (state.step == config_.to && recording_) finish();
    if (state.step == config_.from - 1) begin();
  });
  engine.on(Event::kEnd, HookPhase::kLast, [this](State&) {
    if (recording_) finish();
  });
}

void Profiler::begin() {
  recording_ = true;
  if (config_.operators) operators_.emplace();
  clock_.skip();
  begin_ns_ = monotonic_ns();
  clock_.listen([this](Phase phase, std::int64_t begin_ns, std::int64_t end_ns) {
    if (phase == Phase::kData) step_begin_ns_ = begin_ns;  // there may be a test between steps
    events_.push_back(
        {.name = std::string(to_string(phase)), .lane = kPhaseLane, .begin_ns = begin_ns, .end_ns = end_ns});
  });
}

void Profiler::end_step(const State& state) {
  const std::int64_t now = monotonic_ns();
  events_.push_back({.name = "step " + std::to_string(state.step),
                     .lane = kSteps,
                     .begin_ns = step_begin_ns_,
                     .end_ns = now,
                     .details = {{"epoch", std::to_string(state.epoch + 1)}}});
}

RankTrace Profiler::trace() {
  RankTrace trace{.rank = world_->rank(), .host = host_name(), .events = std::exchange(events_, {})};
  for (auto&& more :
       {operators_ ? operators_->take() : std::vector<TraceEvent>{}, trace_operations(*world_, begin_ns_)}) {
    trace.events.insert(trace.events.end(), more.begin(), more.end());
  }
  trace.lanes = lanes_of(trace.events);
  trace.clock_offset_ns = monotonic_clock_offset(*world_).ns;
  trace.origin_ns = of_rank_0(begin_ns_, *world_);
  return trace;
}

void Profiler::finish() {
  recording_ = false;
  clock_.listen({});
  const MeasuredInputs measured;
  const auto ranks = gather_text(to_chrome_events(trace()), *world_);
  operators_.reset();
  if (world_->rank() == 0) {
    BestEffort().attempt([&] { write_atomically(path_, to_chrome_trace(ranks)); }, "the run continues without a trace");
  }
  clock_.skip();
}

}  // namespace phalanx
