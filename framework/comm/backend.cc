#include "framework/comm/backend.h"

#include "framework/base/cores.h"

namespace phalanx {

bool wants_progress_thread(const World& world) {
  return world.progress_thread.value_or(world.place.local_size < usable_cores());
}

}  // namespace phalanx
