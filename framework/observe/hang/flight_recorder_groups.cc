// SPDX-License-Identifier: Apache-2.0
#include "framework/observe/hang/flight_recorder_groups.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <system_error>

#include "framework/base/error.h"
#include "framework/base/text.h"

namespace phalanx {
namespace {

constexpr std::size_t kShownRanks = 8;  // of a group

// Reads "[0, 1, 2]".
std::vector<int> ranks_in(const DumpValue& value) {
  const std::string text = value.text();
  std::vector<int> ranks;
  const char* at = text.data();
  const char* const end = at + text.size();
  const auto take = [&](char wanted) { return at < end && *at == wanted && (++at, true); };
  bool good = take('[');
  while (good && !take(']')) {
    int rank = -1;
    const auto read = std::from_chars(at, end, rank);
    good = read.ec == std::errc() && rank >= 0 && rank < kMaxDumpRanks;
    at = read.ptr;
    ranks.push_back(rank);
    if (take(',')) take(' ');
  }
  std::ranges::sort(ranks);
  if (!good || at != end || std::ranges::adjacent_find(ranks) != ranks.end()) value.refuse(" is not a list of ranks");
  return ranks;
}

}  // namespace

void DumpGroups::add(int rank, const std::string& source, const DumpValue& content) {
  auto& groups = by_rank_[rank];
  const auto config = content.find("pg_config");
  if (!config) return;
  for (const auto& entry : config->values()) {
    const DumpGroup group{
        .name = entry.at("name").text(), .description = entry.at("desc").text(), .ranks = ranks_in(entry.at("ranks"))};
    if (!group.ranks.empty()) size_ = std::max(size_, group.ranks.back() + 1);
    if (group.name.empty()) continue;  // Gloo's groups, all under one key, have no names yet when they are recorded
    if (group.is_world()) check_world(source, group);
    groups[group.name] = group;
    auto& known = ranks_[group.name];
    if (std::ranges::find(known, group.ranks) == known.end()) known.push_back(group.ranks);
  }
}

const DumpGroup& DumpGroups::find(int rank, const std::string& name, const std::string& description) {
  return by_rank_[rank]
      .try_emplace(name, DumpGroup{.name = name, .description = description, .ranks = {}})
      .first->second;
}

const std::string& DumpGroups::label(const DumpGroup& group) {
  auto& label = labels_[&group];
  if (label.empty()) label = make_label(group);
  return label;
}

std::string DumpGroups::make_label(const DumpGroup& group) const {
  if (group.is_world()) return "world";
  const bool described = !group.description.empty() && group.description != "undefined";
  const std::string name = "group " + shortened(group.name);
  std::string label = (described ? shortened(group.description) + " " : "") + name;
  const auto same = ranks_.find(group.name);
  const auto other = [&](const auto& ranks) { return ranks != group.ranks; };
  if (same != ranks_.end() && std::ranges::any_of(same->second, other)) label += " of " + ranks_text(group.ranks);
  return label;
}

void DumpGroups::check_world(const std::string& source, const DumpGroup& group) {
  if (world_from_.empty()) {
    world_ = group;
    world_from_ = source;
  } else if (world_.ranks != group.ranks) {
    throw DataError(source + ": its job has " + std::to_string(group.ranks.size()) + " ranks, but the one of " +
                    world_from_ + " has " + std::to_string(world_.ranks.size()) + "; give the dumps of one job only");
  }
}

std::string ranks_text(const std::vector<int>& ranks) {
  const auto shown = std::min(ranks.size(), kShownRanks), more = ranks.size() - shown;
  std::vector<std::string> words;
  for (std::size_t i = 0; i < shown; ++i) words.push_back(std::to_string(ranks[i]));
  return (ranks.size() == 1 ? "rank " : "ranks ") + join(words, ", ") +
         (more > 0 ? " and " + std::to_string(more) + " more" : "");
}

}  // namespace phalanx
