// SPDX-License-Identifier: Apache-2.0
#include "tools/diff_runs/replay_both.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <sstream>

#include "engine/run_folder.h"
#include "launch/exit_status.h"
#include "launch/temporary_folder.h"
#include "tools/regress/places/process.h"

namespace phalanx {
namespace {

constexpr double kLongestReplay = 24 * 3600;  // seconds
constexpr const char* kFound = "First difference from ";

std::vector<std::string> command_of(const ReplayPlan& plan, std::size_t run, const std::string& run_dir) {
  std::vector<std::string> command = plan.command;
  command.insert(command.end(),
                 {plan.recordings[run], "--rank=" + std::to_string(plan.rank), "--until=" + std::to_string(plan.until),
                  "--set=train.digests=1", "--run_dir=" + run_dir});
  if (run == 0) command.push_back("--against=" + plan.recordings[1]);
  return command;
}

bool is_unlike_recording(const std::string& errors) { return errors.find("the replay differs") != std::string::npos; }

// Returns true if the first run, which is compared with the other recording, failed only because they differ.
bool has_only_found(const std::string& operation, std::size_t run, const regress::Captured& done) {
  return run == 0 && !operation.empty() && done.status == kFailed && !is_unlike_recording(done.errors);
}

}  // namespace

bool ReplayFindings::is_unlike(std::size_t run) const { return is_unlike_recording(problems[run]); }

std::string operation_in(const std::string& output) {
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    const auto colon = line.find(": ");
    if (line.starts_with(kFound) && colon != line.npos) return line.substr(colon + 2);
  }
  return "";
}

ReplayFindings replay_both(const ReplayPlan& plan) {
  const TemporaryFolder folder;
  ReplayFindings findings;
  std::array<std::string, 2> runs;
  for (std::size_t run = 0; run < runs.size(); ++run) {
    runs[run] = folder.path() + "/" + std::to_string(run);
    const auto done = regress::capture(command_of(plan, run, runs[run]), "", kLongestReplay);
    if (run == 0) findings.operation = operation_in(done.output);
    if (done.status != kDone && !has_only_found(findings.operation, run, done)) {
      findings.problems[run] =
          done.errors.empty() ? "it ended with status " + std::to_string(done.status) : done.errors;
    }
  }
  const auto has_digests = [](const std::string& run) {
    return std::filesystem::is_directory(RunFolder(run).digests());
  };
  if (findings.problems[0].empty() && findings.problems[1].empty() && std::ranges::all_of(runs, has_digests)) {
    std::int64_t steps = 0;
    findings.digests = compare(read_digests(runs[0]), read_digests(runs[1]), steps);
    findings.compared = true;
  }
  return findings;
}

}  // namespace phalanx
