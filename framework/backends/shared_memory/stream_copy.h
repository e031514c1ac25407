// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace phalanx::shared_memory {

/// memcpy for what this core will not read again: past its caches (non-temporal stores), where the machine can.
/// Ordinary stores would first fetch every line, from the cache of the peer that has read it last where there is one.
/// What is copied is visible to others after the next release store, as with memcpy.
void stream_copy(std::byte* to, const std::byte* from, std::size_t bytes);

}  // namespace phalanx::shared_memory
