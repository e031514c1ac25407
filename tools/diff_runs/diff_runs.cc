// SPDX-License-Identifier: Apache-2.0
// Finds where two runs that should be equal begin to differ: diff_runs runs/a runs/b

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
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
#include "tools/diff_runs/replay_both.h"

namespace phalanx {
namespace {

using recording::OperationDifference;
using recording::Recording;

struct Options {
  std::vector<std::string> runs{};
  bool replay = true;
};

Options parse(const Arguments& arguments) {
  Options options;
  Flags flags(
      arguments, {"runs/a runs/b"},
      "The runs need digests (train.digests) or recordings (framework.record). If both runs are recorded, the "
      "rank that differs first is replayed to find the step, the phase and the parameters; call it where the runs "
      "were started, so that the paths in their configs lead to the same data. The status is 0 if there is no "
      "difference, and 1 if there is one.");
  flags.add("replay", &options.replay, "replay recordings that differ");
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

std::optional<DigestDifference> compare_digests(const std::vector<std::string>& runs) {
  const auto first = read_digests(runs[0]), second = read_digests(runs[1]);
  std::int64_t steps = 0;
  const auto difference = compare(first, second, steps);
  if (steps == 0) throw ConfigError("the runs have no step with digests in common");
  if (difference) {
    print(*difference);
  } else {
    std::printf("No difference in the digests of %lld steps\n", static_cast<long long>(steps));
  }
  return difference;
}

/// The first difference between the recordings of two runs.
struct RecordedDifference {
  int rank = 0;
  OperationDifference operation{};
};

// Orders differences by step. In one step, a rank that computed something else comes before a rank that received it.
bool earlier(const OperationDifference& a, const OperationDifference& b) {
  if (a.first.step != b.first.step) return a.first.step < b.first.step;
  const auto later = [](const auto& one) { return one.kind == OperationDifference::Kind::kResult; };
  return later(a) < later(b);
}

std::optional<RecordedDifference> compare_recordings(const std::string& first, const std::string& second) {
  const auto ranks = recording::recorded_ranks(first), others = recording::recorded_ranks(second);
  std::optional<RecordedDifference> found;
  int compared = 0;
  for (const int rank : ranks) {
    if (std::ranges::find(others, rank) == others.end()) continue;
    ++compared;
    Recording a(first, rank), b(second, rank);
    if (a.begins_at() > 0 || b.begins_at() > 0) {
      for (auto* one : {&a, &b}) {
        if (one->begins_at() > 0) one->skip_to_segment();
      }
    }
    auto difference = recording::compare(a, b);
    if (!difference || (found && !earlier(*difference, found->operation))) continue;
    found = {.rank = rank, .operation = *std::move(difference)};
  }
  if (compared == 0) throw ConfigError(first + " and " + second + " have recordings of different ranks");
  if (!found) {
    std::printf("No difference in the recorded operations of %d ranks\n", compared);
    return std::nullopt;
  }
  std::printf("First difference in the recordings: rank %d, %s\n", found->rank, found->operation.text.c_str());
  return found;
}

// Returns a plan to replay the rank with the first difference, up to the step of that difference.
ReplayPlan plan_of(const std::optional<DigestDifference>& digests, const std::optional<RecordedDifference>& recorded) {
  if (!recorded) return {.rank = digests->rank, .until = digests->step};
  // Before the first step, there are no digests to compare, so the first step is included.
  return {.rank = recorded->rank, .until = std::max<std::int64_t>(recorded->operation.first.step, 1)};
}

void print(const ReplayFindings& findings, const ReplayPlan& plan) {
  for (std::size_t run = 0; run < plan.recordings.size(); ++run) {
    if (findings.problems[run].empty()) continue;
    const bool unlike = findings.is_unlike(run);
    std::printf("%s %s:\n  %s\n", plan.recordings[run].c_str(),
                unlike ? "does not repeat what it has recorded" : "cannot be replayed here",
                findings.problems[run].c_str());
    if (unlike) std::printf("  If code and data are the same, a machine has computed wrongly, in that run or now.\n");
  }
  if (!findings.operation.empty()) {
    std::printf("Replayed up to the first operation that differs: %s\n", findings.operation.c_str());
  }
  if (findings.digests) {
    const auto& found = *findings.digests;
    std::printf("Replayed with the digests of every step: they differ first in step %lld, phase %s: %s",
                static_cast<long long>(found.step), found.phase.c_str(), found.tensor.c_str());
    if (!found.others.empty()) std::printf(", and %zu more tensors", found.others.size());
    std::printf("\n");
  } else if (findings.compared) {
    std::printf("Replayed with the digests of every step: there is no difference in them up to step %lld\n",
                static_cast<long long>(plan.until));
  }
}

// Replays the rank that differs first up to the step in which it does.
void descend(ReplayPlan plan, const Arguments& arguments) {
  if (find_command("replay") == nullptr) return;  // a program of which this is the only command
  std::fflush(stdout);
  plan.command = {arguments.program.front(), "replay"};
  print(replay_both(plan), plan);
  std::printf("To stop there in a debugger: replay %s --rank %d --until %lld --gdb, and the same with %s\n",
              plan.recordings[0].c_str(), plan.rank, static_cast<long long>(plan.until), plan.recordings[1].c_str());
}

int run(const Arguments& arguments) {
  const Options options = parse(arguments);
  const std::string first = recording_of(options.runs[0]), second = recording_of(options.runs[1]);
  const bool recorded = !first.empty() && !second.empty();
  const bool digests = has_digests(options.runs[0]) && has_digests(options.runs[1]);
  std::optional<DigestDifference> in_digests;
  std::optional<RecordedDifference> in_recordings;
  if (digests || !recorded) in_digests = compare_digests(options.runs);
  if (recorded) in_recordings = compare_recordings(first, second);
  if (!in_digests && !in_recordings) return kDone;
  if (!recorded) {
    std::printf("To find the operation, run both with framework.record: FOLDER, and compare them again\n");
  } else if (options.replay) {
    ReplayPlan plan = plan_of(in_digests, in_recordings);
    plan.recordings = {first, second};
    descend(std::move(plan), arguments);
  }
  return kFailed;
}

const bool diff_runs_registered = register_command(
    {"diff_runs", "finds where two runs that should be equal begin to differ", CommandGroup::kModels, run});

}  // namespace
}  // namespace phalanx
