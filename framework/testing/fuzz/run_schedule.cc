// SPDX-License-Identifier: Apache-2.0
#include "framework/testing/fuzz/run_schedule.h"

#include <array>
#include <cstdio>
#include <exception>
#include <memory>
#include <span>
#include <thread>

#include "framework/backends/inproc/heap_fabric.h"
#include "framework/backends/shared_memory/communicator.h"
#include "framework/comm/backend.h"
#include "framework/testing/fuzz/dice.h"
#include "framework/testing/fuzz/player.h"

namespace phalanx::testing {
namespace {

constexpr Seconds kNever{1e6};  // schedules do not depend on time

using inproc::HeapFabric;

// Draws how ranks reach each other's memory: as the threads that they are, or only as processes could.
HeapFabric::Reach draw_reach(std::uint64_t seed) {
  constexpr std::array kReaches{HeapFabric::Reach::kEverything, HeapFabric::Reach::kBlocks, HeapFabric::Reach::kBlocks,
                                HeapFabric::Reach::kFetched};
  Dice dice(mix(seed, 0x4eac4));
  return dice.one_of(std::span<const HeapFabric::Reach>(kReaches));
}

CommunicatorPtr connect(std::uint64_t seed, int rank, int ranks, const StorePtr& store) {
  const RankInfo rank_info{.rank = rank, .size = ranks, .local_rank = rank, .local_size = ranks};
  const ConnectOptions options{.rank_info = rank_info, .store = store, .timeout = kNever, .progress_thread = false};
  return shared_memory::connect("inproc", options, std::make_unique<HeapFabric>(draw_reach(seed)));
}

void report_hang(const Program& program, const std::vector<std::unique_ptr<Player>>& players) {
  std::fprintf(stderr, "schedule %llu hangs:\n", static_cast<unsigned long long>(program.seed));
  for (std::size_t rank = 0; rank < players.size(); ++rank) {
    const auto at = static_cast<std::size_t>(players[rank]->at());
    const auto what = at < program.steps.size() ? describe(program.steps[at]) : "the end";
    std::fprintf(stderr, "  rank %zu has reached step %zu, %s\n", rank, at, what.c_str());
  }
}

}  // namespace

std::optional<Kill> draw_kill(const Program& program) {
  Dice dice(mix(program.seed, 0x6111));
  if (dice.once_in(2)) return std::nullopt;
  return Kill{.rank = dice.below(program.ranks),
              .after = static_cast<std::uint64_t>(dice.below(1 << dice.below(9))),
              .mode = dice.once_in(3) ? Kill::Mode::kBetweenOperations : Kill::Mode::kInOperation};
}

Outcome run_schedule(std::uint64_t seed) {
  const Program program(seed);
  std::vector<std::unique_ptr<Player>> players;
  Schedule schedule(seed, program.ranks, draw_kill(program), [&] { report_hang(program, players); });
  for (int rank = 0; rank < program.ranks; ++rank) {
    players.push_back(std::make_unique<Player>(program, schedule, rank));
  }
  const auto store = make_hash_store(Seconds(60));
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < program.ranks; ++rank) {
      threads.emplace_back([&, rank] {
        auto world = connect(seed, rank, program.ranks, store);
        schedule.enter(rank);
        players[rank]->play(std::move(world));
        schedule.leave();
      });
    }
  }
  Outcome outcome{
      .faults = {}, .trace = schedule.trace(), .points = schedule.points(), .killed = schedule.killed(), .finished = 0};
  for (const auto& player : players) {
    outcome.finished += player->finished();
    outcome.faults.insert(outcome.faults.end(), player->faults().begin(), player->faults().end());
  }
  if (outcome.killed < 0 && outcome.finished < program.ranks) outcome.faults.emplace_back("a rank gave up");
  return outcome;
}

}  // namespace phalanx::testing
