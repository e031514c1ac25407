// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "launch/failure/failure.h"
#include "launch/failure/verdict.h"

// Presents a failure to a person at a terminal.
namespace phalanx {

/// Facts about a failure that the job knows in addition to the rank's message.
struct FrameContext {
  int ranks = 0;                          // number of ranks of the job; 0 if unknown
  int others = 0;                         // further ranks that ended because of this one
  std::vector<std::string> last_lines{};  // last lines of the rank's log
  int columns = 100;
};

/// Returns the failure in a frame, with rank, host and log file. The text ends with a newline:
///
///     ┌─ Rank 1 of 4 on node7 failed ───────────────────
///     │ loss is not finite in step 120
///     │
///     │ Log: runs/mnist/logs/rank1.log
///     │ 3 other ranks ended with it.
///     └─────────────────────────────────────────────────
///
/// Long lines are broken between words. A word longer than a line, such as a path, stays whole so that it can be
/// copied. Control characters are removed. A negative rank means the job's launcher.
std::string frame(const Failure& failure, const FrameContext& context = {});

/// Returns the last `count` lines of a file that are not empty. Reads only the end of the file, so the log may be of
/// any length. Returns nothing if the file does not exist, since a log is only a help and never a reason to fail.
std::vector<std::string> last_lines(const std::string& path, int count);

/// Returns the path of a rank's log file in a run's log folder.
std::string log_path(const std::string& log_folder, int rank);

/// Prints the verdict's cause to standard error, in a frame and in one write, with the rank's log file in `log_folder`,
/// and with its last lines if the rank left no message. Prints nothing if there is no cause.
void report(const Verdict& verdict, int ranks, const std::string& log_folder);

}  // namespace phalanx
