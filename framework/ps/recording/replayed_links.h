// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "framework/collectives/recording/replay.h"
#include "framework/ps/client/links.h"

namespace phalanx::ps {

/// Returns links whose answers come from a recording that record_links() has made, so no server is needed. A request is
/// compared with the recorded one, and answered, when it is sent; a difference is a recording::ReplayDifference. While
/// the replay is detached, requests are neither compared nor recorded: tensors stay as they are.
std::shared_ptr<Links> replay_links(std::shared_ptr<recording::Replay> replay);

}  // namespace phalanx::ps
