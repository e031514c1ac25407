// SPDX-License-Identifier: Apache-2.0
#include "framework/base/cache_folder.h"

#include "framework/base/environment.h"

namespace phalanx {

std::string user_cache_folder() {
  if (const auto cache = environment("XDG_CACHE_HOME"); cache && !cache->empty()) return *cache;
  if (const auto home = environment("HOME"); home && !home->empty()) return *home + "/.cache";
  return "";
}

}  // namespace phalanx
