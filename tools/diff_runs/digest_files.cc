// SPDX-License-Identifier: Apache-2.0
#include "tools/diff_runs/digest_files.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <set>
#include <sstream>
#include <string_view>
#include <tuple>
#include <utility>

#include "engine/run_folder.h"
#include "framework/base/error.h"
#include "framework/base/files.h"

namespace phalanx {
namespace {

constexpr std::array<std::string_view, 5> kPhases{"batch", "outputs", "loss", "gradients", "parameters"};

using Key = std::pair<std::int64_t, int>;                          // step, number of the phase
using Tensors = std::vector<std::pair<std::string, std::string>>;  // names and digests, in the order of the file

int number_of(const std::string& phase) {
  return static_cast<int>(std::ranges::find(kPhases, phase) - kPhases.begin());
}

// Returns nullopt for a line that is malformed.
std::optional<DigestLine> parse(const std::string& text) {
  DigestLine line;
  std::istringstream words(text);
  std::string step;
  if (!std::getline(words, step, '\t') || !std::getline(words, line.phase, '\t') ||
      !std::getline(words, line.digest, '\t') || !std::getline(words, line.tensor)) {
    return std::nullopt;
  }
  const auto [end, error] = std::from_chars(step.data(), step.data() + step.size(), line.step);
  if (error != std::errc() || end != step.data() + step.size()) return std::nullopt;
  if (number_of(line.phase) == static_cast<int>(kPhases.size()) || line.digest.size() != 16) return std::nullopt;
  return line;
}

std::vector<DigestLine> read_file_of_rank(const std::string& path) {
  std::istringstream text(read_file(path));
  std::vector<DigestLine> lines;
  int number = 0;
  for (std::string line; std::getline(text, line) && !text.eof();) {
    ++number;
    auto parsed = parse(line);
    if (!parsed) throw DataError(path + ":" + std::to_string(number) + ": is not a line of digests");
    lines.push_back(*std::move(parsed));
  }
  return lines;
}

std::map<Key, Tensors> by_phase(const std::vector<DigestLine>& lines) {
  std::map<Key, Tensors> phases;
  for (const auto& line : lines) phases[{line.step, number_of(line.phase)}].emplace_back(line.tensor, line.digest);
  return phases;
}

// Returns the names whose digests differ, or that one of the two does not have.
std::vector<std::string> different(const Tensors& first, const Tensors& second) {
  std::vector<std::string> names;
  const std::map<std::string, std::string> others(second.begin(), second.end());
  for (const auto& [name, digest] : first) {
    const auto other = others.find(name);
    if (other == others.end() || other->second != digest) names.push_back(name);
  }
  const std::map<std::string, std::string> own(first.begin(), first.end());
  for (const auto& [name, digest] : second) {
    if (!own.contains(name)) names.push_back(name);
  }
  return names;
}

}  // namespace

std::map<int, std::vector<DigestLine>> read_digests(const std::string& run) {
  const std::string folder = RunFolder(run).digests();
  std::map<int, std::vector<DigestLine>> ranks;
  std::error_code error;
  for (std::filesystem::directory_iterator each(folder, error), end; !error && each != end; each.increment(error)) {
    const std::string name = each->path().filename().string();
    int rank = -1;
    constexpr std::string_view kBegin = "rank";
    if (!name.starts_with(kBegin) || !name.ends_with(".txt")) continue;
    std::from_chars(name.data() + kBegin.size(), name.data() + name.size(), rank);
    if (rank >= 0) ranks[rank] = read_file_of_rank(each->path().string());
  }
  if (ranks.empty()) {
    throw ConfigError(run + " has no digests; train.digests: N in its config writes those of every N-th step");
  }
  return ranks;
}

std::optional<DigestDifference> compare(const std::map<int, std::vector<DigestLine>>& first,
                                        const std::map<int, std::vector<DigestLine>>& second, std::int64_t& steps) {
  std::optional<DigestDifference> found;
  std::set<std::int64_t> compared;
  Key place;
  for (const auto& [rank, lines] : first) {
    if (!second.contains(rank)) continue;
    const auto phases = by_phase(lines), others = by_phase(second.at(rank));
    for (const auto& [key, tensors] : phases) {
      const auto other = others.find(key);
      if (other == others.end()) continue;
      compared.insert(key.first);
      if (found && key > place) break;
      auto names = different(tensors, other->second);
      if (names.empty()) continue;
      if (found && key == place) {
        found->other_ranks.push_back(rank);
        break;
      }
      place = key;
      found = {.step = key.first,
               .phase = std::string(kPhases.at(static_cast<std::size_t>(key.second))),
               .rank = rank,
               .tensor = names.front(),
               .others = {names.begin() + 1, names.end()}};
      break;
    }
  }
  steps = static_cast<std::int64_t>(compared.size());
  return found;
}

}  // namespace phalanx
