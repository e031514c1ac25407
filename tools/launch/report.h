#pragma once

#include <string>

#include "tools/launch/verdict.h"

namespace phalanx {

/// Path of a rank's log file in a run's log folder.
std::string log_path(const std::string& log_folder, int rank);

/// Prints the verdict's cause to standard error, framed, in one write, with the rank's log file in `log_folder` and its
/// last lines where the rank left no message. Nothing when there is no cause.
void report(const Verdict& verdict, int ranks, const std::string& log_folder);

}  // namespace phalanx
