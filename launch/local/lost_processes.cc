// SPDX-License-Identifier: Apache-2.0
#include "launch/local/lost_processes.h"

#include <algorithm>
#include <map>

#include "framework/base/environment.h"
#include "launch/exit_status.h"
#include "launch/failure/loss.h"
#include "launch/local/print_to_console.h"

namespace phalanx {
namespace {

bool contains(const std::vector<int>& ranks, int rank) { return std::ranges::find(ranks, rank) != ranks.end(); }

}  // namespace

bool is_loss(const LocalLaunch& options, int rank, int status, const std::optional<Failure>& failure) {
  return options.goes_on && is_failure(status) && is_loss(rank, status, failure, options.log_folder);
}

bool LostProcesses::has(int rank) const { return contains(lost_, rank); }

void LostProcesses::add_newcomer(const Supervisor::End& end) {
  const int rank = children_.number_of(end.child);
  const auto failure = failure_left_by(rank, options_.log_folder);
  const std::string message = failure ? failure->message : describe_end(end.status);
  lost_.push_back(rank);
  mark_lost(options_.log_folder, {.rank = rank, .message = message, .time = end.time});
  print_to_console("Rank " + std::to_string(rank) +
                   ", which was to take the place of a lost one, has failed: " + message.substr(0, message.find('\n')));
}

bool LostProcesses::add(const Supervisor::End& end) {
  const int rank = children_.number_of(end.child);
  const auto failure = failure_left_by(rank, options_.log_folder);
  if (!is_loss(options_, rank, exit_status_of(end.status), failure)) {
    if (failure) ending_.push_back(*failure);
    return false;
  }
  lost_.push_back(rank);
  if (!failure && !is_noted_as_lost(rank, options_.log_folder)) {
    described_.push_back(rank);
    describe(end, end.stopped ? describe_stop(options_.lost_after) : describe_end(end.status));
  }
  return true;
}

int LostProcesses::conclude(const std::vector<Supervisor::End>& ends) const {
  std::map<int, int> statuses;  // by rank
  const auto noted = lost_ranks(options_.log_folder);
  for (const auto& end : ends) {
    const int rank = children_.number_of(end.child), status = exit_status_of(end.status);
    // A lost rank may have hung until this process has killed it.
    if (contains(lost_, rank) || (end.by_supervisor && contains(noted, rank) && !has_ended_job(rank))) continue;
    statuses[rank] = status;
    if (!is_failure(status) || end.by_supervisor || failure_left_by(rank, options_.log_folder)) continue;
    const auto taken = std::ranges::find(ending_, rank, &Failure::rank);
    if (taken != ending_.end()) {
      write_failure(options_.log_folder, *taken);
    } else {
      describe(end, describe_end(end.status));
    }
  }
  for (const auto& failure : read_failures(options_.log_folder)) {
    const auto own = statuses.find(failure.rank);
    if (own != statuses.end() && is_failure(own->second)) return own->second;
  }
  std::vector<int> all{kDone};
  for (const auto& [_, status] : statuses) all.push_back(status);
  return most_serious(all);
}

void LostProcesses::settle(std::vector<RankEnd>& ends, std::vector<Failure>& failures) const {
  const auto lost = take_lost_ranks(options_.log_folder);
  const auto is_lost = [&](int rank) { return contains(lost, rank) && !has_ended_job(rank); };
  std::erase_if(failures, [&](const Failure& one) { return is_lost(one.rank) || contains(described_, one.rank); });
  for (const auto& one : ending_) {
    if (contains(lost, one.rank)) failures.push_back(one);  // its file is gone
  }
  if (options_.threads) return;  // they have one end
  const bool any_left = std::ranges::any_of(ends, [&](const RankEnd& end) { return !is_lost(end.rank); });
  if (any_left) std::erase_if(ends, [&](const RankEnd& end) { return is_lost(end.rank); });
  leave_out_unneeded(ends);
}

void LostProcesses::leave_out_unneeded(std::vector<RankEnd>& ends) const {
  std::vector<RankEnd> lost;
  for (const auto& end : ends) {
    if (contains(described_, end.rank)) lost.push_back(end);
  }
  const auto ended_well = [&](const RankEnd& end) {
    return contains(described_, end.rank) || !is_failure(exit_status_of(end.status));
  };
  if (lost.size() == ends.size() || !std::ranges::all_of(ends, ended_well)) return;
  std::erase_if(ends, [&](const RankEnd& end) { return contains(described_, end.rank); });
  for (const auto& end : lost) {
    const std::string message = end.stopped ? describe_stop(options_.lost_after) : describe_end(end.status);
    print_to_console("Rank " + std::to_string(end.rank) + " of " + std::to_string(options_.ranks) +
                     " was lost when the others did not need it any more: " + message.substr(0, message.find('\n')));
  }
}

bool LostProcesses::has_ended_job(int rank) const {
  return std::ranges::find(ending_, rank, &Failure::rank) != ending_.end();
}

void LostProcesses::describe(const Supervisor::End& end, const std::string& message) const {
  write_failure(options_.log_folder,
                {.rank = children_.number_of(end.child), .host = host_name(), .message = message, .time = end.time});
}

}  // namespace phalanx
