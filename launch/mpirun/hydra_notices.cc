// SPDX-License-Identifier: Apache-2.0
#include "launch/mpirun/hydra_notices.h"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <optional>
#include <utility>

namespace phalanx {
namespace {

constexpr std::size_t kEqualSigns = 60;  // minimum

bool is_rule_of_hydra(std::string_view line) {
  return line.size() >= kEqualSigns && line.find_first_not_of('=') == line.npos;
}

constexpr std::string_view kMargin = "=   ";
constexpr std::string_view kExitString = "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: ";
constexpr std::string_view kAbort = "Abort(";

// Lines that say nothing about the job, in MPICH's blocks and after them.
constexpr std::array kEmptyPhrases{std::string_view("=   CLEANING UP REMAINING PROCESSES"),
                                   std::string_view("=   YOU CAN IGNORE THE BELOW CLEANUP MESSAGES"),
                                   std::string_view("This typically refers to a problem with your application."),
                                   std::string_view("Please see the FAQ page for debugging suggestions"),
                                   std::string_view("Ctrl-C caught... cleaning up processes")};

constexpr std::array kBeginnings{kExitString,
                                 kEmptyPhrases[2],
                                 kEmptyPhrases[3],
                                 kEmptyPhrases[4],
                                 std::string_view("[mpiexec@"),
                                 std::string_view("[proxy:")};

bool is_empty_phrase(std::string_view line) { return std::ranges::find(kEmptyPhrases, line) != kEmptyPhrases.end(); }

bool is_message(std::string_view line) {
  const bool aborts = line.starts_with(kAbort) && line.find("application called MPI_Abort") != line.npos;
  return aborts || std::ranges::any_of(kBeginnings, [&](auto beginning) { return line.starts_with(beginning); });
}

// Returns true if a line that begins like this may be a rule or a message.
bool may_be_notice(std::string_view line) {
  const auto fits = [&](std::string_view beginning) {
    return line.starts_with(beginning) || beginning.starts_with(line);
  };
  return line.find_first_not_of('=') == line.npos || fits(kAbort) || std::ranges::any_of(kBeginnings, fits);
}

std::optional<RankEnd> killed_somewhere(const std::string& text) {
  const auto signal = text.rfind("(signal ");
  if (!text.starts_with(kExitString) || signal == text.npos) return std::nullopt;
  int number = 0;
  if (std::sscanf(text.c_str() + signal, "(signal %d)", &number) != 1) return std::nullopt;
  return RankEnd{.rank = -1, .status = W_EXITCODE(0, number)};
}

std::optional<RankEnd> aborted(const std::string& text) {
  int status = 0, rank = 0;
  if (std::sscanf(text.c_str(), "Abort(%d) on node %*d (rank %d in comm 0)", &status, &rank) != 2) return std::nullopt;
  return RankEnd{.rank = rank, .status = W_EXITCODE(status & 0xff, 0)};
}

std::optional<RankEnd> killed_by_signal(const std::string& text) {
  int rank = 0, signal = 0;
  std::array<char, 256> host{};
  const auto begin = text.find("RANK "), kill = text.find("KILLED BY SIGNAL: ");
  if (begin == text.npos || kill == text.npos) return std::nullopt;
  if (std::sscanf(text.c_str() + begin, "RANK %d PID %*d RUNNING AT %255s", &rank, host.data()) != 2 ||
      std::sscanf(text.c_str() + kill, "KILLED BY SIGNAL: %d", &signal) != 1) {
    return std::nullopt;
  }
  return RankEnd{.rank = rank, .status = W_EXITCODE(0, signal), .host = host.data()};
}

bool is_killed(const RankEnd& end) { return WIFSIGNALED(end.status) && WTERMSIG(end.status) == SIGKILL; }

}  // namespace

bool HydraNotices::is_notice(std::string_view line) {
  if (is_rule_of_hydra(line)) {
    inside_ = !inside_;
    if (inside_) notices_.emplace_back();
    return true;
  }
  if (!inside_ && !is_message(line)) return false;
  if (is_empty_phrase(line)) return true;
  if (!inside_) notices_.emplace_back();
  notices_.back() += std::string(inside_ && line.starts_with(kMargin) ? line.substr(kMargin.size()) : line) + "\n";
  return true;
}

std::string HydraNotices::feed(std::string_view piece) {
  pending_ += piece;
  std::string passed;
  std::size_t begin = 0;
  for (std::size_t end; (end = pending_.find('\n', begin)) != pending_.npos; begin = end + 1) {
    const std::string line = pending_.substr(begin, end - begin);
    if (std::exchange(passing_, false) || !is_notice(line)) passed += line + "\n";
  }
  pending_.erase(0, begin);
  if (!pending_.empty() && !inside_ && (passing_ || !may_be_notice(pending_))) {
    passed += std::exchange(pending_, "");
    passing_ = true;
  }
  return passed;
}

std::string HydraNotices::finish() {
  if (inside_) notices_.back() += pending_;
  std::string rest = inside_ ? "" : pending_;
  pending_.clear();
  return rest;
}

std::vector<RankEnd> rank_ends_in_hydra(const std::vector<std::string>& notices) {
  std::vector<RankEnd> ends;
  for (const auto& notice : notices) {
    if (auto end = aborted(notice)) ends.push_back(*end);
    if (auto end = killed_by_signal(notice)) ends.push_back(*end);
    if (auto end = killed_somewhere(notice)) ends.push_back(*end);
  }
  if (ends.size() < 2) return ends;
  std::erase_if(ends, is_killed);
  if (ends.empty()) ends.push_back({.rank = -1, .status = W_EXITCODE(0, SIGKILL)});
  return ends;
}

}  // namespace phalanx
