// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <map>
#include <optional>
#include <string>

#include "tools/regress/place.h"

// Parses the output of Slurm's commands.
namespace phalanx::regress {

/// A partition, with the resources that jobs can have: nodes that are down or drained do not count.
struct SlurmPartition {
  std::string name{};
  int cpus = 0;
  int nodes = 0;
};

/// The format of sinfo that parse_partitions() reads.
inline constexpr const char* kSinfoFormat = "%P|%C|%F";

/// Returns the partitions by name. The default partition is also entered under the name "". Throws DataError for other
/// text.
std::map<std::string, SlurmPartition> parse_partitions(const std::string& sinfo);

/// A task of an array.
struct SlurmTaskId {
  int array = 0;
  int index = 0;
  auto operator<=>(const SlurmTaskId&) const = default;
};

struct SlurmTask {
  std::string state{};   // RUNNING and so on
  int wait_status = 0;   // as waitpid() returns it, once the task has ended
  double seconds = 0;    // time that the task has run since its last start
  std::string reason{};  // why it waits or has ended
};

/// The format of squeue -O that parse_tasks() reads.
inline constexpr const char* kSqueueFormat =
    "ArrayJobID:|,ArrayTaskID:|,State:|,exit_code:|,TimeUsed:|,Reason:|,Comment:|";

/// Returns the tasks whose comment is `owner`, without other jobs. Throws DataError for other text.
std::map<SlurmTaskId, SlurmTask> parse_tasks(const std::string& squeue, const std::string& owner);

/// Returns the seconds of a duration such as "1-02:03:04", "02:03:04" or "3:04".
double parse_duration(const std::string& text);

/// Returns how a task has ended, or nullopt while it has not.
std::optional<JobEnd> end_of(const SlurmTask& task);

/// Returns true if a waiting task will not start by itself: it needs more than its partition has, or it is held, as
/// Slurm does with tasks that it could not start.
bool cannot_start(const SlurmTask& task);

}  // namespace phalanx::regress
