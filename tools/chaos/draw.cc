// SPDX-License-Identifier: Apache-2.0
#include "tools/chaos/draw.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "engine/hooks/planned_fault.h"
#include "framework/base/random.h"

namespace phalanx::chaos {
namespace {

constexpr std::array kEventsOfStep{Event::kSample, Event::kForward, Event::kBackward, Event::kUpdate};

// Streams of the seed of a trial.
enum Stream : std::uint64_t { kRankStream = 1, kStepStream, kEventStream, kNewcomerStream };

// Ranks agree on newcomers within two steps.
constexpr std::int64_t kStepsToReturn = 4;

std::uint64_t number_below(std::uint64_t limit, std::uint64_t seed, std::uint64_t stream) {
  return mix(seed, stream) % limit;
}

// Two checkpoints have surely been written when the one after them begins, since it waits for the one before.
std::int64_t first_step(const Fault& fault, const Subject& subject) {
  return fault.caused_by == CausedBy::kBetween ? 3 * subject.checkpoint_every + 1 : 2;
}

std::int64_t last_step(const Subject& subject) {
  return (subject.replaces ? step_of_return(subject.steps) : subject.steps) - 1;
}

void shuffle(std::vector<const Fault*>& faults, std::uint64_t seed) {
  for (std::size_t i = faults.size(); i > 1; --i) std::swap(faults[i - 1], faults[number_below(i, seed, i)]);
}

Trial draw_one(const Fault& fault, int number, std::uint64_t seed, const Subject& subject) {
  Trial trial{.number = number, .seed = seed, .fault = &fault};
  trial.rank = static_cast<int>(number_below(static_cast<std::uint64_t>(subject.ranks), seed, kRankStream));
  const std::int64_t first = first_step(fault, subject);
  const auto count = static_cast<std::uint64_t>(last_step(subject) - first + 1);
  trial.step = first + static_cast<std::int64_t>(number_below(count, seed, kStepStream));
  trial.event = kEventsOfStep[number_below(kEventsOfStep.size(), seed, kEventStream)];
  if (fault.before_step) trial.event = Event::kSample;
  const auto& points = newcomer_points();
  if (fault.hits_newcomer) trial.newcomer = points[number_below(points.size(), seed, kNewcomerStream)];
  if (fault.at_checkpoint) {
    // Faults by another process happen right after the checkpoint has begun, faults by the rank right before it.
    trial.event = fault.caused_by == CausedBy::kDriver ? Event::kUpdate : Event::kBackward;
    trial.step = std::max(subject.checkpoint_every, trial.step / subject.checkpoint_every * subject.checkpoint_every);
  }
  return trial;
}

}  // namespace

std::int64_t Trial::complete_steps() const {
  const bool in_hooks = event == Event::kUpdate;
  // The check of a step comes before a change that is made at its end.
  if (fault->names_next_step) return step + (in_hooks ? 1 : 0);
  return in_hooks ? step : step - 1;
}

std::int64_t step_of_return(std::int64_t steps) { return steps - kStepsToReturn; }

std::string why_skipped(const Fault& fault, const Subject& subject) {
  if (fault.needs_peer && subject.ranks < 2) return "there is only one rank";
  if (fault.needs_processes && subject.threads) return "the ranks are threads of one process";
  if (fault.hits_newcomer && !subject.replaces) {
    return "lost ranks are not replaced; set faults.on_lost_rank=replace";
  }
  if (fault.needs_mounts && !subject.no_mounts.empty()) return subject.no_mounts;
  if (fault.needs_hosts && !subject.no_hosts.empty()) return subject.no_hosts;
  if (fault.caused_by == CausedBy::kBetween && subject.keep_last < 2) {
    return "checkpoint.keep_last is 1, so there is no other checkpoint to resume from";
  }
  const std::int64_t first = first_step(fault, subject), last = last_step(subject);
  if (first > last) {
    return "the run has only " + std::to_string(subject.steps) + " steps; it takes " +
           std::to_string(subject.steps + first - last);
  }
  if (fault.at_checkpoint && subject.checkpoint_every > last) {
    return "the run ends before its first checkpoint";
  }
  return "";
}

std::vector<Trial> draw(const std::vector<const Fault*>& all, int runs, std::uint64_t seed, const Subject& subject) {
  std::vector<Trial> trials;
  std::vector<const Fault*> left;
  for (int number = 1; number <= runs; ++number) {
    const std::uint64_t own = mix(seed, static_cast<std::uint64_t>(number));
    if (left.empty()) {
      left = all;
      shuffle(left, own);
    }
    trials.push_back(draw_one(*left.back(), number, own, subject));
    left.pop_back();
  }
  return trials;
}

}  // namespace phalanx::chaos
