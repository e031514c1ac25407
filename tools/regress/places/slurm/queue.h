// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tools/regress/place.h"
#include "tools/regress/places/slurm/output.h"

namespace phalanx::regress {

/// The jobs of one owner in Slurm's queue. Jobs that are added before the next call of end_of() become arrays, one for
/// each kind of resources. Not for several threads.
class SlurmQueue {
 public:
  /// Writes the scripts, and what Slurm itself says of a task, into the folder OWNER/slurm.
  SlurmQueue(std::string partition, std::string owner);

  /// Adds a job, and returns its number in this queue.
  std::size_t add(const Job& job);

  /// Submits what has been added, asks Slurm at most once a second, and returns how the job has ended, or nullopt while
  /// it has not. A job that runs longer than its time limit is cancelled. A job that Slurm does not accept, has lost,
  /// or could not run has an infrastructure error.
  std::optional<JobEnd> end_of(std::size_t number);

  /// Cancels the job. Slurm sends SIGTERM, and SIGKILL after its KillWait; or SIGKILL at once.
  void cancel(std::size_t number, int signal);

  /// Cancels all jobs of the owner, also jobs of earlier processes, and waits until they have ended. Throws Error if
  /// they have not after a minute.
  void cancel_all();

 private:
  using Clock = std::chrono::steady_clock;

  struct Entry {
    Job job;
    std::optional<SlurmTaskId> task{};  // none: not submitted yet
    std::optional<JobEnd> end{};
    int cancelled_by = 0;  // a signal; 0: not cancelled
    bool timed_out = false;
  };

  void submit_added();
  void submit(const std::vector<std::size_t>& numbers);
  void ask();
  void update(std::size_t number);
  JobEnd end_of_cancelled(const Entry& entry) const;

  const std::string partition_;
  const std::string owner_;
  std::vector<Entry> entries_;
  std::size_t submitted_ = 0;  // entries that have been submitted or refused
  std::map<SlurmTaskId, SlurmTask> tasks_;
  Clock::time_point asked_{};
  Clock::time_point answered_ = Clock::now();
};

}  // namespace phalanx::regress
