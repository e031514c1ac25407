// SPDX-License-Identifier: Apache-2.0
#include "launch/job/recovery_outcome.h"

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/text.h"
#include "launch/local/meeting_folder.h"
#include "launch/local/print_to_console.h"

namespace phalanx {
namespace {

// Completes the entries of the ranks that take part from now on. The first rank tells the person of them. Returns true
// if there are any.
bool complete_returned(Recovery& recovery, std::int64_t step, const Communicator& world) {
  bool any = false;
  for (auto& one : recovery.returned) {
    if (one.step >= 0) continue;
    any = true;
    one.step = step;
    const auto now = std::chrono::system_clock::now();  // hosts may have different clocks
    one.seconds = std::max(0.0, std::chrono::duration<double>(now - one.lost_at).count());
    if (world.rank() != 0) continue;
    const std::string place = one.in_place_of == kNobody ? "" : " in place of rank " + std::to_string(one.in_place_of);
    const std::string source = one.source < 0 ? "all others" : "rank " + std::to_string(one.source);
    print_to_console(format_text("Rank %d takes part%s after %.2f s, after step %" PRId64
                                 ", with the state of %s, on ranks: %d",
                                 one.rank, place.c_str(), one.seconds, step, source.c_str(), world.size()));
  }
  return any;
}

}  // namespace

void tell_when_it_goes_on(Recovery& recovery, const Communicator& world, Engine& engine) {
  engine.on(Event::kStart, HookPhase::kLast, [&recovery, &world](State& state) {
    if (!recovery.noticed) return;
    const std::chrono::duration<double> seconds =
        std::chrono::steady_clock::now() - *std::exchange(recovery.noticed, std::nullopt);
    recovery.lost_seconds += seconds.count() + std::exchange(recovery.repeated_seconds, 0);
    for (auto& lost : recovery.lost) {
      if (lost.step >= 0) continue;
      lost.step = state.step;
      lost.seconds = seconds.count();
    }
    const bool told = complete_returned(recovery, state.step, world);
    if (world.rank() != 0 || told) return;
    print_to_console(format_text("Training goes on after %.2f s, after step %" PRId64 ", on ranks: %d", seconds.count(),
                                 state.step, world.size()));
  });
}

TooFewRanks too_few_ranks(const Recovery& recovery, int left, const ExperimentConfig& config, std::int64_t step) {
  std::vector<std::string> lost;
  for (const auto& one : recovery.lost) lost.push_back("rank " + std::to_string(one.rank) + " (" + one.reason + ")");
  const auto& faults = config.faults;
  const bool waits = faults.replaces() && faults.wait > 0;
  return TooFewRanks(std::to_string(left) + (left == 1 ? " rank is" : " ranks are") +
                     " left, fewer than faults.min_ranks: " + std::to_string(faults.min_ranks) +
                     (waits ? format_text(", and too few have come in faults.wait: %g s", faults.wait) : "") +
                     ". The run is saved after step " + std::to_string(step) +
                     "; --resume=auto continues it.\nLost: " + join(lost, ", "));
}

}  // namespace phalanx
