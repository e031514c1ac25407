#pragma once

#include <string>
#include <vector>

#include "tools/launch/failure.h"

namespace phalanx {

/// What the job knows of a failure beyond what its rank said.
struct FrameContext {
  int ranks = 0;                          // of the job; 0: not known
  int others = 0;                         // further ranks that ended because of this one
  std::vector<std::string> last_lines{};  // of the rank's log
  int columns = 100;
};

/// The failure for a person at a terminal, framed, with rank, host and log file; ends with a newline:
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

}  // namespace phalanx
