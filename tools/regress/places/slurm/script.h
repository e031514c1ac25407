// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tools/regress/place.h"

namespace phalanx::regress {

/// Exit status of a task that failed before it started its command.
inline constexpr int kCannotStart = 125;

/// The jobs of one call of sbatch: an array whose tasks need the same resources.
struct SlurmArray {
  std::string partition{};
  std::string owner{};      // PlaceOptions::owner, by which the jobs are found again
  std::vector<Job> jobs{};  // at least one; task i of the array is jobs[i]
};

/// Returns true if both jobs need the same resources, so that they can be tasks of one array.
bool need_the_same(const Job& one, const Job& other);

/// Returns the bash script for sbatch. A job on one node runs its command, which starts its own ranks. On several nodes
/// the command calls mpirun, which starts its daemons through Slurm; if it survives a lost host, it calls srun instead,
/// and Slurm does not end the job when a node fails (--no-kill). A task that Slurm has requeued continues from its
/// last checkpoint and appends to its output.
std::string sbatch_script(const SlurmArray& array);

}  // namespace phalanx::regress
