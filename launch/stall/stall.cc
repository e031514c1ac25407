// SPDX-License-Identifier: Apache-2.0
#include "launch/stall/stall.h"

#include <algorithm>
#include <cmath>

#include "framework/base/text.h"

namespace phalanx {
namespace {

constexpr std::size_t kMaxNamed = 8;

bool waits_itself(const Waits& waits, int rank) {
  return std::ranges::find(waits.notes, rank, &WaitNote::rank) != waits.notes.end();
}

std::vector<int> awaited_by(const Waits& waits, const WaitNote& note) {
  std::vector<int> awaited;
  for (const int rank : waits.visible) {
    if (!waits_itself(waits, rank) && (note.peer < 0 || note.peer == rank)) awaited.push_back(rank);
  }
  return awaited;
}

std::string listed(std::vector<std::string> words) {
  if (words.size() <= kMaxNamed) return join(words, ", ");
  const auto more = words.size() - kMaxNamed;
  words.resize(kMaxNamed);
  return join(words, ", ") + " and " + std::to_string(more) + " more";
}

std::string named(const std::vector<int>& ranks) {
  std::vector<std::string> numbers;
  for (const int rank : ranks) numbers.push_back(std::to_string(rank));
  return (ranks.size() == 1 ? "rank " : "ranks ") + listed(std::move(numbers));
}

std::string seconds_of(const Waits& waits, const WaitNote& note) {
  return format_text("%.0f s", std::floor(waits.now - note.since));
}

std::string begin_of(const Waits& waits, const WaitNote& note) {
  return "rank " + std::to_string(note.rank) + " has waited " + seconds_of(waits, note) + " in " + note.operation;
}

std::string each_in(const Waits& waits) {
  std::vector<std::string> ranks;
  for (const auto& note : waits.notes) ranks.push_back("rank " + std::to_string(note.rank) + " in " + note.operation);
  return listed(std::move(ranks));
}

}  // namespace

std::optional<std::string> stall_message(const Waits& waits, int reporter) {
  if (std::ranges::any_of(waits.notes, &WaitNote::reported)) return std::nullopt;
  const WaitNote* first = nullptr;
  for (const auto& note : waits.notes) {
    if (waits.now - note.since < waits.report_after) continue;
    if (first == nullptr) first = &note;
    const auto awaited = awaited_by(waits, note);
    if (awaited.empty()) continue;
    if (note.rank != reporter) return std::nullopt;
    return begin_of(waits, note) + " for " + named(awaited);
  }
  if (first == nullptr || first->rank != reporter) return std::nullopt;
  if (static_cast<int>(waits.notes.size()) < waits.size) return begin_of(waits, *first) + " for ranks of other hosts";
  const auto elsewhere = [&](const WaitNote& note) { return note.operation != first->operation; };
  if (std::ranges::none_of(waits.notes, elsewhere)) {
    return "all ranks have been in " + first->operation + " for " + seconds_of(waits, *first);
  }
  return "all ranks wait for each other, rank " + std::to_string(reporter) + " for " + seconds_of(waits, *first) +
         ": " + each_in(waits);
}

}  // namespace phalanx
