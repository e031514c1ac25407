// SPDX-License-Identifier: Apache-2.0
#include "launch/job/run_with_peers.h"

#include <exception>
#include <memory>
#include <string>
#include <utility>

#include "engine/checkpoint/carried_state.h"
#include "engine/hooks/planned_fault.h"
#include "framework/base/error.h"
#include "framework/base/log.h"
#include "launch/exit_status.h"
#include "launch/job/bind_cores.h"
#include "launch/job/make_data.h"
#include "launch/job/rank_presence.h"
#include "launch/job/shrinking_world.h"
#include "launch/signals/stop_signal.h"

namespace phalanx {
namespace {

// The reason for which ranks go on in another world.
struct Change {
  std::exception_ptr loss{};  // the error by which a loss was noticed; null: none
  bool newcomers = false;     // they wait to take part
};

// Changes the world until training can go on in it. Returns false if this rank has left it.
bool change_world(ShrinkingWorld& ranks, RankRun& run, Change change) {
  while (true) {
    // Replicas that differ are such an error, too, and it may be unknown which of them is wrong.
    if (change.loss && !ranks.shrink(*run.recovery)) std::rethrow_exception(change.loss);
    if (ranks.leaves()) return false;
    try {
      if (change.newcomers) ranks.grow(run.rank.launched, *run.recovery);
      change = {.newcomers = ranks.await_newcomers(stop_requested)};
      if (!change.newcomers) return true;
    } catch (const CommError& error) {
      if (error.kind() != CommError::Kind::kPeerLost) throw;
      log_warning() << "a rank is lost while newcomers connect, or the others wait for them: " << error.what();
      change = {.loss = std::current_exception()};
    }
  }
}

// Runs the rank while ranks are lost and newcomers take their places, after a first change.
int run_while_ranks_change(RankRun& run, ShrinkingWorld& ranks) {
  const std::string logs = run.rank.folder->logs();
  run.newcomers_wait = [&ranks] { return ranks.newcomers_wait(); };
  Change change;
  while (change_world(ranks, run, change)) {
    run.hang.clear();
    run.same_processors = run.same_processors && ranks.same_processors();
    run.presence = std::make_unique<RankPresence>(ranks.world().rank(), ranks.world().size(), logs);
    try {
      return run_in_world(run, ranks.connections(), ranks.config());
    } catch (const NewcomersWait&) {
      log_info() << "ranks wait to take part";
      change = {.newcomers = true};
    } catch (const CommError& error) {
      // Before the first step, there is nothing to go on with, and the error may be that of the whole job.
      if (error.kind() != CommError::Kind::kPeerLost || !run.recovery->can_go_on()) throw;
      log_warning() << "a rank is lost: " << error.what();
      change = {.loss = std::current_exception()};
    }
    run.presence.reset();
  }
  return kDone;
}

}  // namespace

int run_with_peers(RankRun& run, Connections connections) {
  const int size = connections.front().group->size();
  const bool alone = size == 1 && !run.job.config.faults.lets_join(1);
  if (!run.job.goes_on() || alone) {
    run.presence = std::make_unique<RankPresence>(run.rank.rank(), size, run.rank.folder->logs());
    return run_in_world(run, std::move(connections), run.job.config);
  }
  run.recovery = std::make_shared<Recovery>();
  const ShrinkingWorld::Rank rank{
      .number_in_job = run.rank.rank(), .thread = run.rank.shared != nullptr, .log_folder = run.rank.folder->logs()};
  ShrinkingWorld ranks(std::move(connections), rank, run.job.config);
  return run_while_ranks_change(run, ranks);
}

int run_newcomer(RankRun& run) {
  const StartedRank& rank = run.rank;
  const auto& config = run.job.config;
  const int share = rank.newcomer->local_rank, shares = rank.newcomer->local_size;
  log_info() << bind_cores(config.launch, {.rank = share, .size = shares, .local_rank = share, .local_size = shares},
                           CoresFrom::kPhalanx);
  const auto fault = planned_fault();
  if (fault) end_newcomer(*fault, "loads");
  run.splits = make_data(run.job, /*prints=*/false);
  if (fault) end_newcomer(*fault, "waits");
  run.recovery = std::make_shared<Recovery>();
  auto joined = ShrinkingWorld::join(*rank.newcomer, {.number_in_job = rank.rank(), .log_folder = rank.folder->logs()},
                                     config, rank.launched, *run.recovery, stop_requested);
  if (!joined) return kInterrupted;
  return run_while_ranks_change(run, *joined);
}

}  // namespace phalanx
