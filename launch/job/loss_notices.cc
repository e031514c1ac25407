// SPDX-License-Identifier: Apache-2.0
#include "launch/job/loss_notices.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <sstream>
#include <thread>

#include "launch/failure/failure.h"
#include "launch/local/print_to_console.h"

namespace phalanx {
namespace {

// A rank that throws, or the launcher of one that is killed, writes the reason within milliseconds, unless the machine
// is busy. This process ends with its launcher, so it does not wait in vain for a launcher that is gone.
constexpr std::chrono::milliseconds kReasonWait{2000};

// Returns the first line, as part of a sentence.
std::string in_a_sentence(const std::string& message) {
  std::string line = message.substr(0, message.find('\n'));
  if (line.ends_with('.')) line.pop_back();
  if (line.starts_with("It ")) line.front() = 'i';
  return line;
}

// Returns the reason for a loss that the person has been told of, by this rank or by an earlier first rank.
std::optional<std::string> known_reason(int rank, const std::vector<LostRank>& before, const std::string& log_folder) {
  const auto own = std::ranges::find(before, rank, &LostRank::rank);
  if (own != before.end()) return own->reason;
  const auto notes = lost_notes(log_folder);
  const auto note = std::ranges::find(notes, rank, &Failure::rank);
  return note == notes.end() ? std::nullopt : std::optional(note->message);
}

// Returns the reason that a lost rank, or its launcher, has written.
std::string await_reason(int lost, const std::string& log_folder) {
  const auto deadline = std::chrono::steady_clock::now() + kReasonWait;
  while (true) {
    for (const auto& failure : read_failures(log_folder)) {
      if (failure.rank == lost) return in_a_sentence(failure.message);
    }
    if (std::chrono::steady_clock::now() >= deadline) return "it ended without giving a reason";
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace

std::string reason_to_leave(const Stranded& rank) { return "its replica has lost rank " + std::to_string(rank.lost); }

std::string tell_of_losses(const Departures& departures, int left, std::size_t everyone,
                           const std::vector<LostRank>& before, const std::string& log_folder) {
  std::string lines;  // "RANK REASON"
  for (const int rank : departures.lost) {
    const auto known = known_reason(rank, before, log_folder);
    const std::string reason = known ? *known : await_reason(rank, log_folder);
    lines += std::to_string(rank) + " " + reason + "\n";
    if (known) continue;
    print_to_console("Rank " + std::to_string(rank) + " of " + std::to_string(everyone) + " is lost, " +
                     std::to_string(left) + (left == 1 ? " is left: " : " are left: ") + reason);
    mark_lost(log_folder, {.rank = rank, .message = reason, .time = failure_time()});
  }
  for (const auto& one : departures.stranded) {
    const std::string reason = reason_to_leave(one);
    lines += std::to_string(one.rank) + " " + reason + "\n";
    if (known_reason(one.rank, before, log_folder)) continue;
    print_to_console("Rank " + std::to_string(one.rank) + " leaves: " + reason);
    mark_lost(log_folder, {.rank = one.rank, .message = reason, .time = failure_time()});
  }
  return lines;
}

void add_losses(const std::string& told, std::vector<LostRank>& losses) {
  std::istringstream lines(told);
  for (std::string line; std::getline(lines, line);) {
    const int rank = std::stoi(line);
    if (std::ranges::find(losses, rank, &LostRank::rank) != losses.end()) continue;
    losses.push_back({.rank = rank, .reason = line.substr(line.find(' ') + 1), .step = -1});
  }
}

}  // namespace phalanx
