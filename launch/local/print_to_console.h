// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace phalanx {

/// Writes a line (without its end) for the person who follows the job: to this process's standard error, or to the one
/// it had when save_console() was called. Uses a single write, so lines of several ranks do not mix. On a terminal, a
/// line that is being redrawn makes room for it. Does nothing if no one reads any more. Thread-safe.
void print_to_console(std::string_view line);

/// Keeps the current standard output and error, the latter for print_to_console(). Called by a rank before they become
/// a log, while the process has one thread.
void save_console();

/// Makes the standard output and error that this process had when save_console() was called its own again. Called when
/// its rank becomes the first one, since the first one has been lost. Does nothing without save_console().
void take_over_console();

}  // namespace phalanx
