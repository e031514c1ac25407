// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "framework/collectives/recording/recorder.h"
#include "framework/ps/client/links.h"

namespace phalanx::ps {

/// Returns links over sockets whose answers are recorded, with a digest of the data that the rank sent. An answer is
/// recorded when the rank has waited for it, in the step in which it sent the request.
std::shared_ptr<Links> record_links(std::shared_ptr<recording::Recorder> recorder);

}  // namespace phalanx::ps
