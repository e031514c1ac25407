#include "framework/comm/backend.h"

#include <thread>

#include "framework/base/cores.h"

namespace phalanx {

bool wants_progress_thread(const World& world) {
  const auto allowed = allowed_cores().size();
  const auto cores = allowed > 0 ? allowed : std::thread::hardware_concurrency();
  return world.progress_thread.value_or(world.place.local_size < static_cast<int>(cores));
}

}  // namespace phalanx
