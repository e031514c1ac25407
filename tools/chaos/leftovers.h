// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace phalanx::chaos {

/// Returns the processes of this machine whose command line has `text`, except for this one. What a run has started is
/// found by the path of its run folder, whoever is its parent now.
std::vector<pid_t> processes_with(const std::string& text);

/// Waits up to `seconds` for the end of these processes, then kills those that are left. Returns how many there were.
int end_orphans(const std::string& text, double seconds);

/// Returns what a run that has ended should not have left: files in its temporary folder, and in its run folder
/// unfinished checkpoints and records of failures.
std::vector<std::string> leaks(const std::string& temporary_folder, const std::string& run_folder);

}  // namespace phalanx::chaos
