#include "tools/bench_train/options.h"

#include <algorithm>

#include "tools/bench_train/system.h"

namespace phalanx::bench_train {

bool Options::uses_python() const {
  return std::ranges::any_of(systems, [](const auto& name) { return find_system(name).python; });
}

}  // namespace phalanx::bench_train
