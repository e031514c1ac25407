// SPDX-License-Identifier: Apache-2.0
// Finds where two runs that should be equal begin to differ: diff_runs runs/a runs/b

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/run_folder.h"
#include "framework/base/config/parse.h"
#include "framework/base/config/read_config.h"
#include "framework/base/error.h"
#include "framework/base/text.h"
#include "framework/collectives/recording/comparison.h"
#include "launch/exit_status.h"
#include "tools/command/command.h"
#include "tools/command/flags.h"
#include "tools/diff_runs/digest_files.h"

namespace phalanx {
namespace {

using recording::OperationDifference;
using recording::Recording;

struct Options {
  std::vector<std::string> runs{};
};

Options parse(const Arguments& arguments) {
  Options options;
  Flags flags(arguments, {"runs/a runs/b"},
              "The runs need digests (train.digests) or recordings (framework.record). The status is 0 if there is no "
              "difference, and 1 if there is one.");
  options.runs = flags.parse(arguments.words);
  if (options.runs.size() != 2)
    throw ConfigError(arguments.name + " compares two run folders: " + arguments.name + " A B");
  for (const auto& run : options.runs) {
    if (!std::filesystem::is_directory(run)) throw ConfigError(run + ": no such run folder");
  }
  return options;
}

// Returns framework.record of a run; empty: it was not recorded.
std::string recording_of(const std::string& run) {
  const std::string path = RunFolder(run).config();
  if (!std::filesystem::exists(path)) return "";
  std::vector<ConfigProblem> problems;
  const auto root = config::parse({config::read_config(path), path}, problems);
  if (!problems.empty()) throw ConfigError(problems);
  const auto* const framework = config::find(root, "framework");
  const auto* const record = framework == nullptr ? nullptr : config::find(framework->value, "record");
  return record == nullptr ? "" : record->value.text;
}

bool has_digests(const std::string& run) { return std::filesystem::is_directory(RunFolder(run).digests()); }

std::string list(const std::vector<int>& ranks) {
  std::vector<std::string> texts;
  for (const int rank : ranks) texts.push_back(std::to_string(rank));
  return join(texts, ", ");
}

void print(const DigestDifference& difference) {
  std::printf("First difference in the digests: step %lld, phase %s, rank %d: %s\n",
              static_cast<long long>(difference.step), difference.phase.c_str(), difference.rank,
              difference.tensor.c_str());
  if (!difference.others.empty()) {
    std::printf("  %zu more tensors of this rank differ there\n", difference.others.size());
  }
  if (!difference.other_ranks.empty()) std::printf("  so does rank %s\n", list(difference.other_ranks).c_str());
}

// Returns true if the runs differ.
bool compare_digests(const std::vector<std::string>& runs) {
  const auto first = read_digests(runs[0]), second = read_digests(runs[1]);
  std::int64_t steps = 0;
  const auto difference = compare(first, second, steps);
  if (steps == 0) throw ConfigError("the runs have no step with digests in common");
  if (difference) {
    print(*difference);
  } else {
    std::printf("No difference in the digests of %lld steps\n", static_cast<long long>(steps));
  }
  return difference.has_value();
}

// Orders differences by step. In one step, a rank that computed something else comes before a rank that received it.
bool earlier(const OperationDifference& a, const OperationDifference& b) {
  if (a.first.step != b.first.step) return a.first.step < b.first.step;
  const auto later = [](const auto& one) { return one.kind == OperationDifference::Kind::kResult; };
  return later(a) < later(b);
}

// Returns true if the recordings differ.
bool compare_recordings(const std::string& first, const std::string& second) {
  const auto ranks = recording::recorded_ranks(first), others = recording::recorded_ranks(second);
  std::optional<OperationDifference> found;
  int found_on = 0, compared = 0;
  for (const int rank : ranks) {
    if (std::ranges::find(others, rank) == others.end()) continue;
    ++compared;
    Recording a(first, rank), b(second, rank);
    if (a.begins_at() > 0 || b.begins_at() > 0) {
      for (auto* one : {&a, &b}) {
        if (one->begins_at() > 0) one->skip_to_segment();
      }
    }
    const auto difference = recording::compare(a, b);
    if (!difference || (found && !earlier(*difference, *found))) continue;
    found = difference;
    found_on = rank;
  }
  if (compared == 0) throw ConfigError(first + " and " + second + " have recordings of different ranks");
  if (!found) {
    std::printf("No difference in the recorded operations of %d ranks\n", compared);
    return false;
  }
  std::printf("First difference in the recordings: rank %d, %s\n", found_on, found->text.c_str());
  std::printf("To stop there in a debugger: replay %s --rank %d --gdb, and the same with %s\n", first.c_str(), found_on,
              second.c_str());
  return true;
}

int run(const Arguments& arguments) {
  const Options options = parse(arguments);
  const std::string first = recording_of(options.runs[0]), second = recording_of(options.runs[1]);
  const bool recorded = !first.empty() && !second.empty();
  const bool digests = has_digests(options.runs[0]) && has_digests(options.runs[1]);
  bool differ = false;
  if (digests || !recorded) differ = compare_digests(options.runs);
  if (recorded) differ |= compare_recordings(first, second);
  return differ ? kFailed : kDone;
}

const bool diff_runs_registered = register_command(
    {"diff_runs", "finds where two runs that should be equal begin to differ", CommandGroup::kModels, run});

}  // namespace
}  // namespace phalanx
