// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "engine/sync/sync_context.h"
#include "engine/sync/synchronizer.h"

namespace phalanx {

// The stages of `strategy: sharded` above the first. sharded.cc describes the first, which shards the optimizer state.

/// ZeRO stage 2: gradients are sharded too, except during backward.
std::unique_ptr<Synchronizer> make_sharded_gradients(const SyncContext& context);

/// ZeRO stage 3: values are sharded too, except while a block of the model needs them. Without `reshard_after_forward`,
/// values that forward has gathered stay until backward has passed the block.
std::unique_ptr<Synchronizer> make_sharded_parameters(const SyncContext& context, bool reshard_after_forward);

}  // namespace phalanx
