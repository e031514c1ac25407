// SPDX-License-Identifier: Apache-2.0
#include "tools/chaos/draw.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "framework/base/random.h"

namespace phalanx::chaos {
namespace {

constexpr std::array kEventsOfStep{Event::kSample, Event::kForward, Event::kBackward, Event::kUpdate};

// Streams of the seed of a trial.
enum Stream : std::uint64_t { kRankStream = 1, kStepStream, kEventStream };

std::uint64_t number_below(std::uint64_t limit, std::uint64_t seed, std::uint64_t stream) {
  return mix(seed, stream) % limit;
}

// Two checkpoints have surely been written when the one after them begins, since it waits for the one before.
std::int64_t first_step(const Fault& fault, const Subject& subject) {
  return fault.caused_by == CausedBy::kBetween ? 3 * subject.checkpoint_every + 1 : 2;
}

std::int64_t last_step(const Subject& subject) { return subject.steps - 1; }

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
  if (fault.at_checkpoint) {
    // Faults by another process happen right after the checkpoint has begun, faults by the rank right before it.
    trial.event = fault.caused_by == CausedBy::kDriver ? Event::kUpdate : Event::kBackward;
    trial.step = std::max(subject.checkpoint_every, trial.step / subject.checkpoint_every * subject.checkpoint_every);
  }
  return trial;
}

}  // namespace

std::string why_skipped(const Fault& fault, const Subject& subject) {
  if (fault.needs_peer && subject.ranks < 2) return "there is only one rank";
  if (fault.needs_processes && subject.threads) return "the ranks are threads of one process";
  if (fault.needs_mounts && !subject.no_mounts.empty()) return subject.no_mounts;
  if (fault.needs_hosts && !subject.no_hosts.empty()) return subject.no_hosts;
  if (fault.caused_by == CausedBy::kBetween && subject.keep_last < 2) {
    return "checkpoint.keep_last is 1, so there is no other checkpoint to resume from";
  }
  if (first_step(fault, subject) > last_step(subject)) {
    return "the run has only " + std::to_string(subject.steps) + " steps; it takes " +
           std::to_string(first_step(fault, subject) + 1);
  }
  if (fault.at_checkpoint && subject.checkpoint_every > last_step(subject)) {
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
