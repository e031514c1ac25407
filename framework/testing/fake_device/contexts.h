// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>

namespace phalanx::testing {

/// Returns true if this process has opened a context of the fake device: made it the current device of a thread, other
/// than to restore the one that was current before. On a GPU, a context takes some hundred megabytes.
bool has_context(c10::DeviceIndex device);

/// Closes all contexts.
void forget_contexts();

}  // namespace phalanx::testing
