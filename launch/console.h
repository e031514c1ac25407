// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace phalanx {

/// Writes a line (without its end) to where a person reads of the job: this process's standard error, or what that was
/// when keep_console() was called. In one write, so that lines of several ranks do not mix; a line that is redrawn on a
/// terminal makes room for it. Where nobody reads any more, nothing happens. Any thread.
void tell_console(std::string_view line);

/// For a rank whose standard error is about to become a log. In a process with one thread.
void keep_console();

}  // namespace phalanx
