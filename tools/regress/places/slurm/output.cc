// SPDX-License-Identifier: Apache-2.0
#include "tools/regress/places/slurm/output.h"

#include <sys/wait.h>

#include <array>
#include <charconv>
#include <csignal>
#include <set>
#include <sstream>
#include <system_error>
#include <vector>

#include "framework/base/error.h"
#include "tools/regress/places/slurm/script.h"

namespace phalanx::regress {
namespace {

std::vector<std::string> split(const std::string& line, char separator) {
  std::vector<std::string> words;
  std::istringstream text(line);
  for (std::string word; std::getline(text, word, separator);) words.push_back(word);
  return words;
}

int parse_number(const std::string& text, const std::string& line) {
  int number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || rest != end) throw DataError("Slurm printed \"" + line + "\", which has no number here");
  return number;
}

std::vector<std::string> fields_of(const std::string& line, std::size_t count) {
  auto fields = split(line, '|');
  if (fields.size() < count) throw DataError("Slurm printed \"" + line + "\", which has too few fields");
  return fields;
}

// Returns the number that jobs can have, from "allocated/idle/other/total".
int usable(const std::string& counts, const std::string& line) {
  const auto parts = split(counts, '/');
  if (parts.size() != 4) throw DataError("Slurm printed \"" + line + "\", where four numbers were expected");
  return parse_number(parts[3], line) - parse_number(parts[2], line);
}

const std::set<std::string> kEnds = {"BOOT_FAIL", "CANCELLED", "COMPLETED",     "DEADLINE", "FAILED",
                                     "NODE_FAIL", "PREEMPTED", "OUT_OF_MEMORY", "REVOKED",  "TIMEOUT"};

// Reasons for which tasks wait until somebody changes the partition or the task.
const std::set<std::string> kHopeless = {"BadConstraints", "PartitionConfig", "PartitionNodeLimit",
                                         "PartitionTimeLimit"};

int exit_status_of(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

}  // namespace

std::map<std::string, SlurmPartition> parse_partitions(const std::string& sinfo) {
  std::map<std::string, SlurmPartition> partitions;
  for (const auto& line : split(sinfo, '\n')) {
    const auto fields = fields_of(line, 3);
    const bool is_default = fields[0].ends_with('*');
    const std::string name = is_default ? fields[0].substr(0, fields[0].size() - 1) : fields[0];
    SlurmPartition& partition = partitions[name];
    partition.name = name;
    partition.cpus += usable(fields[1], line);
    partition.nodes += usable(fields[2], line);
    if (is_default) partitions[""] = partition;
  }
  return partitions;
}

std::map<SlurmTaskId, SlurmTask> parse_tasks(const std::string& squeue, const std::string& owner) {
  std::map<SlurmTaskId, SlurmTask> tasks;
  for (const auto& line : split(squeue, '\n')) {
    const auto fields = fields_of(line, 7);
    if (fields[6] != owner || fields[1] == "N/A") continue;
    tasks[{parse_number(fields[0], line), parse_number(fields[1], line)}] = {
        .state = fields[2],
        .wait_status = parse_number(fields[3], line),
        .seconds = parse_duration(fields[4]),
        .reason = fields[5]};
  }
  return tasks;
}

double parse_duration(const std::string& text) {
  constexpr std::array kUnits = {1.0, 60.0, 3600.0};  // from the right
  const auto dash = text.find('-');
  double seconds = dash == text.npos ? 0 : 86400.0 * parse_number(text.substr(0, dash), text);
  const auto parts = split(dash == text.npos ? text : text.substr(dash + 1), ':');
  for (std::size_t i = 0; i < parts.size() && i < kUnits.size(); ++i) {
    const auto& part = parts[parts.size() - 1 - i];
    if (part != "INVALID" && part != "N/A") seconds += kUnits[i] * parse_number(part, text);
  }
  return seconds;
}

std::optional<JobEnd> end_of(const SlurmTask& task) {
  if (!kEnds.contains(task.state)) return std::nullopt;
  const int status = exit_status_of(task.wait_status);
  if (task.state == "COMPLETED") return JobEnd{};
  if (task.state == "TIMEOUT" || task.state == "DEADLINE")
    return JobEnd{.exit_status = 128 + SIGTERM, .timed_out = true};
  if (task.state == "OUT_OF_MEMORY") return JobEnd{.exit_status = 128 + SIGKILL};
  if (task.state == "FAILED" && status != kCannotStart) return JobEnd{.exit_status = status == 0 ? 1 : status};
  const std::string reason = task.reason.empty() || task.reason == "None" ? "" : " (" + task.reason + ")";
  const std::string what = task.state == "FAILED" ? "could not start the command" : "ended as " + task.state + reason;
  return JobEnd{.exit_status = status, .infrastructure_error = what};
}

bool cannot_start(const SlurmTask& task) {
  if (task.state == "REQUEUE_HOLD") return true;
  return task.state == "PENDING" &&
         (kHopeless.contains(task.reason) || task.reason.starts_with("JobHeld") || task.reason.ends_with("held"));
}

}  // namespace phalanx::regress
