// SPDX-License-Identifier: Apache-2.0
#include "launch/local/run_share.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "framework/comm/launch/host_lease.h"
#include "launch/failure/failure.h"
#include "launch/failure/verdict.h"
#include "launch/local/child_ranks.h"
#include "launch/local/loss_policy.h"
#include "launch/local/lost_processes.h"
#include "launch/local/rank_notes.h"
#include "launch/temporary_folder.h"

namespace phalanx {
namespace {

// Makes the supervisor wait for the launcher, which starts processes for lost ranks, as long as it has no others.
void wait_for_launcher(Supervisor::Policy& policy, const ChildRanks& children, const RankNotes& notes,
                       LostProcesses& lost, const std::optional<Share>& share) {
  policy.goes_on = [&](const Supervisor::End& end) { return goes_on_without(end, children, notes, lost); };
  const auto all_lost = std::make_shared<bool>(true);
  policy.ended = [&, all_lost, is_lost = policy.is_lost](const Supervisor::End& end) {
    const int number = children.number_of(end.child);
    const bool ended_as_lost = end.by_supervisor && failed(end.status) && is_lost(end.child);  // it hung
    const bool goes = has_left(end, children, notes, is_lost) || lost.has(number) || ended_as_lost;
    *all_lost = *all_lost && goes;
    if (share && share->ended) share->ended(number, goes, exit_status_of(end.status));
  };
  policy.expects_more = [all_lost] { return *all_lost; };
}

}  // namespace

int run_share(const LocalLaunch& options, const std::function<int(int rank)>& body,
              const std::function<void(Share&)>& prepare) {
  const TemporaryFolder spare_folder(TemporaryFolder::Removal::kAlways);
  ChildRanks children(options, spare_folder.path(), body);
  LostProcesses lost(options, children);
  const RankNotes notes(options.ranks_of_job, children.meeting_folder());
  std::optional<Supervisor> made;
  std::optional<Share> share;
  auto policy = policy_of(options, children, lost);
  if (options.replacements > 0) wait_for_launcher(policy, children, notes, lost, share);
  Supervisor& supervisor = made.emplace(std::move(policy));
  share.emplace(supervisor, [&](const Newcomer& newcomer) { children.start(newcomer, supervisor); });
  children.start_all(supervisor);
  prepare(*share);
  auto ends = supervisor.run();
  if (options.replacements > 0) {
    std::erase_if(ends, [&](const auto& end) { return notes.waits(children.number_of(end.child)); });
  }
  const int status = lost.conclude(ends);
  if (lease_is_over()) return status;  // the job may have been started again by now
  // Writes to log_folder, if that is possible now, what a rank could not write there.
  for (const auto& failure : take_failures(spare_folder.path())) write_failure(options.log_folder, failure);
  return status;
}

}  // namespace phalanx
