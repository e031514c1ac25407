// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "launch/failure.h"
#include "launch/verdict.h"

// A failure as a person at a terminal is told of it.
namespace phalanx {

/// What the job knows about a failure in addition to the rank's message.
struct FrameContext {
  int ranks = 0;                          // of the job; 0: not known
  int others = 0;                         // further ranks that ended because of this one
  std::vector<std::string> last_lines{};  // of the rank's log
  int columns = 100;
};

/// The failure, framed, with rank, host and log file; ends with a newline:
///
///     ┌─ Rank 1 of 4 on node7 failed ───────────────────
///     │ loss is not finite in step 120
///     │
///     │ Log: runs/mnist/logs/rank1.log
///     │ 3 other ranks ended with it.
///     └─────────────────────────────────────────────────
///
/// Long lines are broken between words; a word longer than a line, such as a path, stays whole so that it can be
/// copied. Control characters are left out. A negative rank is the job's launcher.
std::string frame(const Failure& failure, const FrameContext& context = {});

/// The last `count` lines of a file that are not empty. Reads only the file's end, so a log of any length will do.
/// None when there is no such file: a log is a help, never a reason to fail.
std::vector<std::string> last_lines(const std::string& path, int count);

/// Path of a rank's log file in a run's log folder.
std::string log_path(const std::string& log_folder, int rank);

/// Prints the verdict's cause to standard error, framed, in one write, with the rank's log file in `log_folder` and its
/// last lines where the rank left no message. Nothing when there is no cause.
void report(const Verdict& verdict, int ranks, const std::string& log_folder);

}  // namespace phalanx
