// SPDX-License-Identifier: Apache-2.0
#include "tools/chaos/subject.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <system_error>

#include "engine/run_folder.h"
#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/base/text.h"

namespace phalanx::chaos {
namespace {

namespace fs = std::filesystem;

constexpr double kReferenceSeconds = 3600;
constexpr double kBand = 0.1;  // of the loss, for runs whose bits differ from run to run
constexpr int kPort = 29731;

void append(std::vector<std::string>& words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
}

// Returns the variables of a rank that torchrun started: the first half of the ranks is on the first host.
std::vector<std::string> rank_variables(int rank, int ranks) {
  const int local_ranks = ranks / 2;
  return {"RANK=" + std::to_string(rank),
          "WORLD_SIZE=" + std::to_string(ranks),
          "LOCAL_RANK=" + std::to_string(rank % local_ranks),
          "LOCAL_WORLD_SIZE=" + std::to_string(local_ranks),
          "MASTER_ADDR=node1",
          "MASTER_PORT=" + std::to_string(kPort)};
}

std::uintmax_t bytes_in(const std::string& folder) {
  std::uintmax_t bytes = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) bytes += entry.file_size();
  }
  return bytes;
}

// Returns the loss of the last test, or of training if there is no test.
double loss_of(const JsonValue& summary) {
  for (const char* split : {"test", "train"}) {
    if (summary.has(split) && summary.at(split).has("loss")) return summary.at(split).get<double>("loss");
  }
  return 0;
}

double run_undisturbed(const Launching& launching, const Folders& folders) {
  folders.create();
  const auto begin = Attempt::Clock::now();
  Start more{.command = {"--set=launch.restarts=0"}, .variables = {}};
  if (launching.hosts != nullptr) more.command.push_back("--set=faults.on_lost_rank=stop");
  Attempt attempt(starts_of(launching, folders, more), folders.attempt(0), folders.note());
  attempt.wait(kReferenceSeconds);
  if (!attempt.poll() || attempt.status() != 0) {
    throw Error("the run fails without any fault, with status " + std::to_string(attempt.status()) + ":\n" +
                attempt.errors());
  }
  return std::chrono::duration<double>(Attempt::Clock::now() - begin).count();
}

}  // namespace

void Folders::create() const {
  std::error_code error;
  for (const auto& folder : {base, temporary(), attempt(0), attempt(1), attempt(2), attempt(3)}) {
    fs::create_directories(folder, error);
    if (error) throw Error(folder + " cannot be created: " + error.message());
  }
}

std::string Folders::attempt(int number) const { return base + "/attempt" + std::to_string(number); }

std::vector<Start> starts_of(const Launching& launching, const Folders& folders, const Start& more) {
  std::vector<std::string> train = launching.train;
  append(train, launching.arguments);
  train.push_back("--run_dir=" + folders.run());
  append(train, more.command);
  auto variables = more.variables;
  variables.emplace_back("TMPDIR", folders.temporary());
  if (launching.hosts == nullptr) return {{.command = train, .variables = variables}};
  std::vector<std::string> on_host;  // hosts do not inherit variables
  for (const auto& [name, value] : variables) on_host.push_back(name + "=" + value);
  std::vector<Start> starts;
  for (int rank = 0; rank < launching.ranks; ++rank) {
    auto own = on_host;
    append(own, rank_variables(rank, launching.ranks));
    starts.push_back({.command = launching.hosts->command(rank < launching.ranks / 2 ? 0 : 1, own, train)});
  }
  return starts;
}

Reference measure_reference(const Launching& launching, const std::string& folder) {
  const Folders first(folder + "/undisturbed1"), second(folder + "/undisturbed2");
  Reference reference{.seconds = run_undisturbed(launching, first)};
  run_undisturbed(launching, second);
  reference.weights = read_file(RunFolder(first.run()).weights());
  reference.bitwise = reference.weights == read_file(RunFolder(second.run()).weights());
  const auto summary = summary_of(first.run());
  reference.steps = summary.get<std::int64_t>("steps");
  reference.loss = loss_of(summary);
  reference.spread = std::abs(reference.loss - loss_of(summary_of(second.run())));
  reference.bytes = bytes_in(first.run());
  return reference;
}

JsonValue summary_of(const std::string& run_folder) {
  const std::string path = RunFolder(run_folder).summary();
  return parse_json(read_file(path), path);
}

std::string difference(const std::string& run_folder, const Reference& reference, bool bitwise) {
  const auto summary = summary_of(run_folder);
  const auto steps = summary.get<std::int64_t>("steps");
  if (steps != reference.steps) {
    return "it ended after step " + std::to_string(steps) + " instead of " + std::to_string(reference.steps);
  }
  if (bitwise) {
    const bool same = read_file(RunFolder(run_folder).weights()) == reference.weights;
    return same ? "" : "its weights differ from the undisturbed run's";
  }
  const double loss = loss_of(summary), allowed = std::max(kBand * std::abs(reference.loss), 5 * reference.spread);
  if (std::abs(loss - reference.loss) <= allowed) return "";
  return format_text("its loss is %g, and the undisturbed run's %g", loss, reference.loss);
}

}  // namespace phalanx::chaos
