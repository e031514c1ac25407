#include "framework/comm/backend.h"

#include <thread>

namespace phalanx {

bool wants_progress_thread(const World& world) {
  return world.progress_thread.value_or(world.place.local_size < static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace phalanx
