// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace phalanx::bench_train {

/// CPU time that all processes and the kernel of this machine have taken so far, of all cores together, in seconds; it
/// counts in hundredths (proc(5), /proc/stat). Throws Error where the system does not tell.
double busy_seconds();

}  // namespace phalanx::bench_train
