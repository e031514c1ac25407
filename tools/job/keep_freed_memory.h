#pragma once

namespace phalanx {

/// Has malloc keep what is freed in the process. A training step frees and allocates the same large buffers again and
/// again: kept, they cost nothing; given back to the system, they cost up to a quarter of the time in page faults. For
/// programs that train, before their first step; glibc's malloc alone.
void keep_freed_memory();

}  // namespace phalanx
