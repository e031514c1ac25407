// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace phalanx::bench_train {

/// Returns the CPU seconds that all processes and the kernel of this machine have used so far, summed over all cores.
/// The resolution is 0.01 s (proc(5), /proc/stat). Throws Error if the system does not provide them.
double busy_seconds();

}  // namespace phalanx::bench_train
