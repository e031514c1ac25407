// SPDX-License-Identifier: Apache-2.0
#include "launch/rank/same_start.h"

#include <torch/headeronly/version.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "framework/base/keyed_hash.h"
#include "framework/base/version.h"
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

// Returns the keys of YAML in block style with their values: "lr: 0.1" below "optimizer:" is {"optimizer.lr", "0.1"}.
// Lines without a key, such as items of lists, belong to the value of the key above them.
Lines keys_in(const std::string& yaml) {
  Lines keys;
  std::vector<std::pair<std::size_t, std::string>> above;  // indentation and path of the sections around the line
  std::istringstream lines(yaml);
  for (std::string line; std::getline(lines, line);) {
    const auto begin = std::min(line.find_first_not_of(' '), line.size());
    const auto colon = line.find(':');
    const bool keyed = colon != std::string::npos && line.find_first_of(" -{[\"", begin) > colon;
    if (!keyed) {
      if (!keys.empty()) keys.back().second += (keys.back().second.empty() ? "" : " ") + line.substr(begin);
      continue;
    }
    while (!above.empty() && above.back().first >= begin) above.pop_back();
    const std::string key = line.substr(begin, colon - begin);
    above.emplace_back(begin, above.empty() ? key : above.back().second + "." + key);
    keys.emplace_back(above.back().second, line.substr(std::min(line.find_first_not_of(' ', colon + 1), line.size())));
  }
  return keys;
}

std::optional<std::string> value_at(const Lines& keys, const std::string& path) {
  const auto found = std::ranges::find(keys, path, &Lines::value_type::first);
  return found == keys.end() ? std::nullopt : std::optional(found->second);
}

std::string digest(const std::string& config) { return sha256(config).substr(0, 12); }

// Returns "optimizer.lr is 0.2 on rank 1 and 0.1 on rank 0".
std::string first_difference(int rank, const std::string& mine, const std::string& first) {
  const Lines own = keys_in(mine), other = keys_in(first);
  const auto describe = [&](const std::string& what, const std::string& value, const std::string& value_of_first) {
    return what + " is " + (value.empty() ? "set" : value) + " on rank " + std::to_string(rank) + " and " +
           (value_of_first.empty() ? "set" : value_of_first) + " on rank 0";
  };
  for (const auto& [path, value] : own) {
    const auto there = value_at(other, path);
    if (there != value) return describe(path, value, there.value_or("absent"));
  }
  for (const auto& [path, value] : other) {
    if (!value_at(own, path)) return describe(path, "absent", value);
  }
  return describe("its digest", digest(mine), digest(first));
}

std::string version_in(const StartFacts& facts, const std::string& name) {
  const auto found = facts.versions.find(name);
  return found == facts.versions.end() ? "none" : found->second;
}

constexpr const char* kFirst = "start/first";
constexpr const char* kVerdict = "start/verdict";
constexpr const char* kSeen = "start/seen";

std::string difference_key(int rank) { return "start/difference/" + std::to_string(rank); }

// Returns a value that rank `from` sets. Names the rank if it does not.
std::string get_from(int from, const std::string& key, Store& store) {
  try {
    return store.get(key);
  } catch (const CommError& error) {
    if (error.kind() != CommError::Kind::kTimeout) throw;
    throw CommError(error.kind(), "rank " + std::to_string(from) + " has not come: " + error.what());
  }
}

}  // namespace

std::map<std::string, std::string> program_versions() { return {{"Phalanx", kVersion}, {"LibTorch", TORCH_VERSION}}; }

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
      const std::string difference = get_from(other, difference_key(other), store);
      if (verdict.empty()) verdict = difference;
    }
    store.set(kVerdict, verdict);
  } else {
    store.set(difference_key(rank), start_difference(rank, mine, facts_in(get_from(0, kFirst, store))));
  }
  const std::string verdict = get_from(0, kVerdict, store);
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
