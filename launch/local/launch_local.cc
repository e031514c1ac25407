// SPDX-License-Identifier: Apache-2.0
#include "launch/local/launch_local.h"

#include <optional>
#include <utility>
#include <vector>

#include "framework/base/environment.h"
#include "launch/failure/failure.h"
#include "launch/failure/failure_report.h"
#include "launch/failure/verdict.h"
#include "launch/local/child_ranks.h"
#include "launch/local/loss_policy.h"
#include "launch/local/lost_processes.h"
#include "launch/local/rank_notes.h"
#include "launch/local/replacements.h"
#include "launch/local/supervisor.h"
#include "launch/temporary_folder.h"

namespace phalanx {
namespace {

// Makes the supervisor start processes for lost ranks, by `replace`.
void let_replace(Supervisor::Policy& policy, const ChildRanks& children, const RankNotes& notes, LostProcesses& lost,
                 const std::function<void(int rank)>& replace) {
  policy.waits = [&](int child) { return notes.waits(children.number_of(child)); };
  policy.goes_on = [&, replace](const Supervisor::End& end) {
    if (!goes_on_without(end, children, notes, lost)) return false;
    if (lost.has(children.number_of(end.child))) replace(children.number_of(end.child));
    return true;
  };
  policy.ended = [&, replace, is_lost = policy.is_lost](const Supervisor::End& end) {
    if (has_left(end, children, notes, is_lost)) replace(children.number_of(end.child));
  };
}

std::vector<RankEnd> ends_of_ranks(const std::vector<Supervisor::End>& ends, const ChildRanks& children) {
  std::vector<RankEnd> ranks;
  for (const auto& end : ends) {
    ranks.push_back({.rank = children.number_of(end.child),
                     .status = end.status,
                     .time = end.time,
                     .by_supervisor = end.by_supervisor,
                     .stopped = end.stopped,
                     .host = host_name()});
  }
  return ranks;
}

}  // namespace

Verdict run_local(const LocalLaunch& options, const std::function<int(int rank)>& body) {
  take_failures(options.log_folder);
  take_lost_ranks(options.log_folder);
  const TemporaryFolder rendezvous_folder(TemporaryFolder::Removal::kAlways);
  ChildRanks children(options, rendezvous_folder.path(), body);
  LostProcesses lost(options, children);
  Replacements replacements({.ranks = options.ranks,
                             .most = options.replacements,
                             .delay = options.replacement_delay,
                             .meeting_folder = rendezvous_folder.path()});
  std::optional<Supervisor> made;
  auto policy = policy_of(options, children, lost);
  if (replacements.enabled()) {
    let_replace(policy, children, replacements.notes(), lost, [&](int rank) {
      replacements.replace(rank, *made, [&](Newcomer newcomer) {
        newcomer.local_rank = newcomer.place;
        newcomer.local_size = options.ranks;
        children.start(newcomer, *made);
        return true;
      });
    });
  }
  Supervisor& supervisor = made.emplace(std::move(policy));
  children.start_all(supervisor);
  auto ends = ends_of_ranks(supervisor.run(), children);
  std::erase_if(ends, [&](const RankEnd& end) { return replacements.waits(end.rank); });
  auto failures = take_failures(options.log_folder, rendezvous_folder.path());
  std::erase_if(failures, [&](const Failure& one) { return replacements.waits(one.rank); });
  lost.settle(ends, failures);
  // A process with several ranks has one exit status for all of them.
  const int status = exit_status_of(ends.front().status);
  return judge(ends, std::move(failures), supervisor.interrupted(), status);
}

int launch_local(const LocalLaunch& options, const std::function<int(int rank)>& body) {
  const Verdict verdict = run_local(options, body);
  report(verdict, options.ranks, options.log_folder);
  if (options.ended) options.ended(verdict);
  return verdict.status;
}

}  // namespace phalanx
