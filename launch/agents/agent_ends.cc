// SPDX-License-Identifier: Apache-2.0
#include "launch/agents/agent_ends.h"

#include <sys/wait.h>

#include <algorithm>
#include <utility>

#include "framework/base/text.h"
#include "launch/agents/agent.h"
#include "launch/exit_status.h"

namespace phalanx {

void AgentEnds::take(const RankNotice& notice) {
  if (!notice.lost) statuses_[notice.number] = notice.status;
}

// ssh ends with status 255 if the connection breaks, and also if its command was killed.
std::string AgentEnds::why(const Supervisor::End& end) const {
  const double silent = agents_[static_cast<std::size_t>(end.child)].silent_for;
  if (silent > 0) return format_text("the host has been silent for %.1f s", silent);
  if (was_without_lease(end)) {
    return format_text("the agent there heard nothing from the launcher for %.1f s",
                       std::chrono::duration<double>(options_.lease).count());
  }
  if (WIFSIGNALED(end.status)) return "the agent there was killed by signal " + std::to_string(WTERMSIG(end.status));
  if (WEXITSTATUS(end.status) == 255) return "the connection to it broke, or the agent there was killed";
  return "the agent there ended with status " + std::to_string(WEXITSTATUS(end.status));
}

bool AgentEnds::was_without_lease(const Supervisor::End& end) {
  return WIFEXITED(end.status) && WEXITSTATUS(end.status) == kWithoutLease;
}

bool AgentEnds::has_own_status(const Supervisor::End& end) {
  return WIFEXITED(end.status) && exit_status_of(end.status) == WEXITSTATUS(end.status);
}

bool AgentEnds::has(std::size_t host, int rank) const {
  const auto numbers = ranks_.all(host);
  return std::ranges::find(numbers, rank) != numbers.end();
}

bool AgentEnds::are_lost(std::size_t host, const std::vector<int>& lost) const {
  return std::ranges::all_of(ranks_.all(host), [&](int number) {
    return options_.waits(number) || std::ranges::find(lost, number) != lost.end();
  });
}

// Returns the ends of the ranks of an agent that has ended without a status of its own, as far as they are not lost.
// Returns nothing if it has not told of all of them, or if one has failed.
std::optional<std::vector<RankEnd>> AgentEnds::told_ends(const Supervisor::End& end,
                                                         const std::vector<int>& lost) const {
  if (has_own_status(end)) return std::nullopt;
  std::vector<RankEnd> ends;
  for (const int number : ranks_.all(host_of(end))) {
    if (options_.waits(number) || std::ranges::find(lost, number) != lost.end()) continue;
    const auto told = statuses_.find(number);
    if (told == statuses_.end() || is_failure(told->second)) return std::nullopt;
    ends.push_back({.rank = -1, .status = W_EXITCODE(told->second, 0), .time = end.time});
  }
  return ends;
}

Verdict AgentEnds::conclude(const std::vector<Supervisor::End>& ends, bool interrupted) const {
  auto failures = take_failures(options_.log_folder);
  const auto lost = take_lost_ranks(options_.log_folder);
  std::vector<RankEnd> good;
  std::vector<Supervisor::End> bad;
  for (const auto& end : ends) {
    if (!failed(end.status)) {
      good.push_back({.rank = -1, .status = end.status, .time = end.time});
    } else if (options_.goes_on && are_lost(host_of(end), lost)) {
      continue;
    } else if (const auto told = told_ends(end, lost)) {
      good.insert(good.end(), told->begin(), told->end());
    } else {
      bad.push_back(end);
    }
  }
  // A rank that has ended the job counts, even if the others have noted it as lost meanwhile.
  std::erase_if(failures, [&](const Failure& one) {
    const bool ended_job =
        std::ranges::any_of(bad, [&](const auto& end) { return has_own_status(end) && has(host_of(end), one.rank); });
    return (std::ranges::find(lost, one.rank) != lost.end() && !ended_job) || options_.waits(one.rank);
  });
  if (failures.empty() && !bad.empty() && !interrupted) failures.push_back(failure_of(bad.front()));
  Verdict verdict = judge(good, std::move(failures), interrupted);
  if (!verdict.cause) return verdict;
  if (!interrupted) verdict.status = status_of(verdict.cause->rank, bad);
  verdict.others = options_.ranks - 1;
  return verdict;
}

Failure AgentEnds::failure_of(const Supervisor::End& end) const {
  return {.rank = -1,
          .host = name_of(end),
          .message = "Its ranks have left no reason: " + why(end) + ".",
          .time = end.time,
          .spares_host = was_without_lease(end)};
}

// Returns the status of the agent of a rank (-1: of any agent) that has failed.
int AgentEnds::status_of(int rank, const std::vector<Supervisor::End>& bad) const {
  for (const auto& end : bad) {
    if (rank < 0 || has(host_of(end), rank)) return exit_status_of(end.status);
  }
  return kRankDied;
}

}  // namespace phalanx
