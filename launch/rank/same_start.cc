// SPDX-License-Identifier: Apache-2.0
#include "launch/rank/same_start.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "framework/base/keyed_hash.h"
#include "framework/comm/store/polling.h"
#include "framework/comm/texts.h"

namespace phalanx {
namespace {

using Lines = std::vector<std::pair<std::string, std::string>>;

// A line for the host, one for each version, an empty one, and the config.
std::string to_text(const StartFacts& facts) {
  std::string text = facts.host + "\n";
  for (const auto& [name, version] : facts.versions) text += name + "\t" + version + "\n";
  return text + "\n" + facts.config;
}

StartFacts facts_in(const std::string& text) {
  StartFacts facts;
  std::istringstream lines(text);
  std::getline(lines, facts.host);
  for (std::string line; std::getline(lines, line) && !line.empty();) {
    const auto tab = std::min(line.find('\t'), line.size());
    facts.versions[line.substr(0, tab)] = line.substr(std::min(tab + 1, line.size()));
  }
  std::ostringstream rest;
  rest << lines.rdbuf();
  facts.config = rest.str();
  return facts;
}

// Returns the lines of YAML in block style as paths and values: "lr: 0.1" below "optimizer:" is {"optimizer.lr",
// "0.1"}. Lines without a key, such as items of lists, belong to the path above them.
Lines paths_in(const std::string& yaml) {
  Lines paths;
  std::vector<std::pair<std::size_t, std::string>> above;  // indentation and path of the sections around the line
  std::istringstream lines(yaml);
  for (std::string line; std::getline(lines, line);) {
    const auto begin = std::min(line.find_first_not_of(' '), line.size());
    const auto colon = line.find(':');
    const bool keyed = colon != std::string::npos && line.find_first_of(" -{[\"", begin) > colon;
    while (keyed && !above.empty() && above.back().first >= begin) above.pop_back();
    const std::string parent = above.empty() ? "" : above.back().second;
    if (!keyed) {
      paths.emplace_back(parent, line.substr(begin));
      continue;
    }
    const std::string key = line.substr(begin, colon - begin);
    above.emplace_back(begin, parent.empty() ? key : parent + "." + key);
    paths.emplace_back(above.back().second, line.substr(std::min(line.find_first_not_of(' ', colon + 1), line.size())));
  }
  return paths;
}

// Returns the value after `path`, or nothing if there is no such line.
std::optional<std::string> value_at(const Lines& lines, const std::string& path) {
  const auto found = std::ranges::find(lines, path, &Lines::value_type::first);
  return found == lines.end() ? std::nullopt : std::optional(found->second);
}

std::string digest(const std::string& config) { return sha256(config).substr(0, 12); }

// Returns "optimizer.lr is 0.2 on rank 1 and 0.1 on rank 0".
std::string first_difference(int rank, const std::string& mine, const std::string& first) {
  const std::string there = " on rank " + std::to_string(rank);
  const Lines own = paths_in(mine), other = paths_in(first);
  const auto [at, at_first] = std::ranges::mismatch(own, other);
  const std::string path = at != own.end() ? at->first : at_first != other.end() ? at_first->first : "";
  const auto value = at != own.end() ? at->second : value_at(own, path).value_or("absent");
  const bool same_path = at_first != other.end() && at_first->first == path;
  const auto value_of_first = same_path ? at_first->second : value_at(other, path).value_or("absent");
  if (path.empty() || value == value_of_first) {
    return "the digest is " + digest(mine) + there + " and " + digest(first) + " on rank 0";
  }
  return path + " is " + value + there + " and " + value_of_first + " on rank 0";
}

std::string version_in(const StartFacts& facts, const std::string& name) {
  const auto found = facts.versions.find(name);
  return found == facts.versions.end() ? "none" : found->second;
}

constexpr const char* kFirst = "start/first";
constexpr const char* kVerdict = "start/verdict";
constexpr const char* kSeen = "start/seen";

std::string difference_key(int rank) { return "start/difference/" + std::to_string(rank); }

}  // namespace

std::string start_difference(int rank, const StartFacts& mine, const StartFacts& first) {
  std::map<std::string, std::string> all = mine.versions;
  all.insert(first.versions.begin(), first.versions.end());
  const std::string who = "rank " + std::to_string(rank);
  for (const auto& [name, unused] : all) {
    const std::string own = version_in(mine, name), other = version_in(first, name);
    if (own == other) continue;
    return who + " on " + mine.host + " has " + name + " " + own + ", but rank 0 on " + first.host + " has " + other +
           "; install the same version on all hosts, and check PATH and LD_LIBRARY_PATH there";
  }
  if (mine.config == first.config) return "";
  return who +
         " was started with a different config than rank 0: " + first_difference(rank, mine.config, first.config) +
         "; compare their --config files and --set flags (--print_config shows the result)";
}

void check_same_start(const StartFacts& mine, const RankInfo& rank_info, Store& store) {
  const int rank = rank_info.rank, size = rank_info.size;
  if (rank == 0) {
    store.set(kFirst, to_text(mine));
    std::string verdict;
    for (int other = 1; other < size; ++other) {
      const std::string difference = store.get(difference_key(other));
      if (verdict.empty()) verdict = difference;
    }
    store.set(kVerdict, verdict);
  } else {
    store.set(difference_key(rank), start_difference(rank, mine, facts_in(store.get(kFirst))));
  }
  const std::string verdict = store.get(kVerdict);
  if (verdict.empty()) return;
  // The store may end with rank 0, which therefore waits until the others have read the verdict.
  store.add(kSeen, 1);
  if (rank == 0) poll_until([&] { return store.add(kSeen, 0) >= size; }, Seconds(5));
  throw StartMismatch(verdict);
}

void check_same_start(const StartFacts& mine, Communicator& world) {
  const StartFacts first = facts_in(broadcast_text(to_text(mine), world));
  for (const auto& difference : all_gather_text(start_difference(world.rank(), mine, first), world)) {
    if (!difference.empty()) throw StartMismatch(difference);
  }
}

}  // namespace phalanx
