// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "engine/sync/sync_context.h"
#include "engine/sync/synchronizer.h"

namespace phalanx {

// The stages of `strategy: sharded` above the first, where that of the optimizer's state is described.

/// ZeRO stage 2: gradients, too, are there in parts alone, but during backward.
std::unique_ptr<Synchronizer> make_sharded_gradients(const SyncContext& context);

/// ZeRO stage 3: values, too, are there in parts alone, but where a block of the model needs them. Without
/// `reshard_after_forward` what forward has gathered stays until backward is through it.
std::unique_ptr<Synchronizer> make_sharded_parameters(const SyncContext& context, bool reshard_after_forward);

}  // namespace phalanx
