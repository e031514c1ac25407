#pragma once

#include <functional>

#include "framework/comm/launch_environment.h"

namespace phalanx {

/// Has `ranks` threads of this process run `body`, each with its place on this one host. Blocks until all have ended,
/// and then throws what was thrown first: the others fail because of it.
void run_rank_threads(int ranks, const std::function<void(const Place& place)>& body);

}  // namespace phalanx
