// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <set>
#include <string>
#include <vector>

namespace phalanx::chaos {

/// Returns the processes of this machine whose command line has `text`, except for this one. What a run has started is
/// found by the path of its run folder, whoever is its parent now.
std::vector<pid_t> processes_with(const std::string& text);

/// Waits up to `seconds` for the end of these processes, then kills those that are left. Returns how many there were.
int end_orphans(const std::string& text, double seconds);

/// Returns what a run that has ended should not have left: files in its temporary folder, such as that of a meeting,
/// and in its run folder unfinished checkpoints and notes of failures and losses.
std::vector<std::string> leaks(const std::string& temporary_folder, const std::string& run_folder);

/// Returns the paths of all files in a folder that other programs use as well, such as /dev/shm.
std::set<std::string> files_of_all(const std::string& folder);

/// Returns the files of this user in such a folder that are not among `before` and that no process has open or mapped.
/// Waits up to `seconds` for them to disappear.
std::vector<std::string> unused_files(const std::string& folder, const std::set<std::string>& before, double seconds);

}  // namespace phalanx::chaos
