// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Allocator.h>

namespace phalanx::testing {

/// Returns the allocator of pinned memory of the host. All bits of new memory are set. Thread-safe.
c10::Allocator& pinned_memory();

/// Returns true for an address in pinned memory.
bool is_pinned_address(const void* address);

}  // namespace phalanx::testing
