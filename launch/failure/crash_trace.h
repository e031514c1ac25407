// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace phalanx {

/// Makes this process leave a stack trace if it crashes: on SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT, also when the
/// stack of the calling thread overflows. The trace names functions, in namespaces without a name too; it is appended
/// to `log` and replaces crash_path(log_folder, rank), and is printed on standard error if `on_stderr` is true. Then
/// the signal ends the process as if it had not been handled. The handler calls only what is allowed in a signal
/// handler.
///
/// Must be called after libraries that handle these signals themselves, such as Open MPI, and at most once per process.
/// Does nothing under the sanitizers, which print traces of their own.
void trace_crashes(const std::string& log_folder, int rank, const std::string& log, bool on_stderr);

}  // namespace phalanx
