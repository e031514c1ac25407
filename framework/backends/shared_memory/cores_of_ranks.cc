// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/shared_memory/cores_of_ranks.h"

#include <algorithm>
#include <set>
#include <sstream>

#include "framework/base/cores.h"

namespace phalanx::shared_memory {

int cores_of_ranks(Store& store, const std::string& key, int rank, int size) {
  std::ostringstream mine;
  for (const int core : allowed_cores()) mine << core << ' ';
  store.set(key + "/" + std::to_string(rank), mine.str());
  std::set<int> all;
  for (int peer = 0; peer < size; ++peer) {
    std::istringstream theirs(store.get(key + "/" + std::to_string(peer)));
    for (int core = 0; theirs >> core;) all.insert(core);
  }
  return all.empty() ? usable_cores() : static_cast<int>(all.size());
}

}  // namespace phalanx::shared_memory
