// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace phalanx {

/// Returns the most bytes of memory that this process has had resident at one time (VmHWM of /proc/self/status),
/// including memory that it shares with other processes. Returns 0 if the kernel does not report it.
std::int64_t peak_resident_bytes();

}  // namespace phalanx
