// SPDX-License-Identifier: Apache-2.0
#include "tools/chaos/judge.h"

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace phalanx::chaos {
namespace {

bool has(const std::string& text, std::string_view words) { return text.find(words) != std::string::npos; }

void complain(Row& row, const std::string& problem) { row.problems.push_back(problem); }

std::string with_status(const Row& row) { return "with status " + std::to_string(row.status); }

void check_names(const std::string& errors, Row& row) {
  const Trial& trial = row.trial;
  const std::string number = std::to_string(trial.rank);
  if (trial.fault->names_rank && !has(errors, "rank " + number) && !has(errors, "Rank " + number)) {
    complain(row, "rank " + number + " was not named");
  }
  const std::string found = "after step " + std::to_string(trial.complete_steps()) + " ";
  if (trial.fault->names_next_step && !has(errors, found)) complain(row, "it was not found " + found);
}

// Returns the element of the list `key` of the summary that describes a rank by its number, as `field` has it.
std::optional<JsonValue> find_rank(const JsonValue& summary, const char* key, const char* field, int rank) {
  for (const auto& one : summary.at(key).elements()) {
    if (one.get<int>(field) == rank) return one;
  }
  return std::nullopt;
}

// Checks that the first newcomer, whose number follows those of the ranks, was killed as planned.
void check_killed_newcomer(const Launching& launching, const JsonValue& summary, const std::string& errors, Row& row) {
  const std::string name = "Rank " + std::to_string(launching.ranks);
  const bool failed = has(errors, name + ", which was to take the place of a lost one, has failed");
  if (!failed && !find_rank(summary, "lost_ranks", "rank", launching.ranks)) {
    complain(row, "the first newcomer was not killed");
  }
}

}  // namespace

bool may_recover(const Fault& fault) {
  return (fault.caused_by == CausedBy::kRank || fault.caused_by == CausedBy::kDriver) && !fault.needs_hosts;
}

bool goes_on_without_lost(const Fault& fault, const Launching& launching) {
  return launching.shrinks && launching.ranks > 1 && may_recover(fault);
}

bool replaces_lost(const Fault& fault, const Launching& launching) {
  return launching.replaces && goes_on_without_lost(fault, launching) && fault.is_replaced;
}

bool says_rank_is_lost(const std::string& errors) { return has(errors, " is lost, "); }

void judge_end(const Launching& launching, const std::string& errors, Row& row) {
  const Fault& fault = *row.trial.fault;
  const bool again = has(errors, "Starts again");
  const bool goes_on = goes_on_without_lost(fault, launching), shrunk = goes_on && says_rank_is_lost(errors);
  const bool must_shrink = goes_on && fault.loses_rank && !(launching.threads && fault.ends_process);
  if (row.status == 0) row.recovered = again ? "relaunched" : shrunk ? "shrunk" : "went on";
  if (must_shrink && row.recovered != "shrunk") {
    complain(row, "it did not go on without the rank, but ended " + with_status(row) +
                      (again ? " after it was started again" : ""));
  } else if (row.status == 0 && !again && !shrunk && fault.expected != Expected::kGoesOn) {
    complain(row, "it ended with status 0");
  } else if (row.status != 0 && std::ranges::find(fault.statuses, row.status) == fault.statuses.end()) {
    complain(row, "it ended " + with_status(row));
  }
  check_names(errors, row);
}

void judge_members(const Launching& launching, const JsonValue& summary, const std::string& errors, Row& row) {
  const Fault& fault = *row.trial.fault;
  // A message that is damaged on its way costs the rank that receives it.
  const auto all_lost = summary.at("lost_ranks").elements();
  const int rank = fault.loses_rank || all_lost.empty() ? row.trial.rank : all_lost.front().get<int>("rank");
  const std::string name = "rank " + std::to_string(rank);
  const auto lost = find_rank(summary, "lost_ranks", "rank", rank);
  if (lost) {
    row.lost_steps = steps_repeated(row.trial, lost->get<std::int64_t>("step"));
  } else {
    complain(row, "lost_ranks of summary.json does not have " + name);
  }
  const auto returned = find_rank(summary, "returned_ranks", "in_place_of", rank);
  if (returned) {
    row.recovered = "replaced";
    row.returned_seconds = returned->get<double>("seconds");
  }
  const bool replaces = replaces_lost(fault, launching);
  if (replaces && !returned) complain(row, "no process has taken the place of " + name);
  if (!replaces && returned) complain(row, "a process has taken the place of " + name);
  if (!replaces || !returned) return;
  if (fault.hits_newcomer) return check_killed_newcomer(launching, summary, errors, row);
  const int ranks = summary.get<int>("ranks");
  if (ranks == launching.ranks) return;
  complain(row, "it ended on " + std::to_string(ranks) + " of " + std::to_string(launching.ranks) + " ranks");
}

std::int64_t last_resumed_step(const std::string& log) {
  constexpr std::string_view kWords = "resumes after step ";
  const auto found = log.rfind(kWords);
  return found == std::string::npos ? 0 : std::stoll(log.substr(found + kWords.size()));
}

std::int64_t steps_repeated(const Trial& trial, std::int64_t kept) {
  return std::max<std::int64_t>(0, trial.complete_steps() - kept);
}

}  // namespace phalanx::chaos
