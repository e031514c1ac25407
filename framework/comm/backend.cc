// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/backend.h"

#include <algorithm>

#include "framework/base/cores.h"
#include "framework/base/error.h"
#include "framework/base/text.h"

namespace phalanx {

bool wants_progress_thread(const ConnectOptions& options) {
  return options.progress_thread.value_or(options.rank_info.local_size < usable_cores());
}

BackendTraits backend_traits(const std::string& name) {
  const auto names = Backends::global().names();
  return std::ranges::find(names, name) == names.end() ? BackendTraits{} : Backends::Choice(name).traits();
}

std::string automatic_backend(WorldKind world) {
  const auto names =
      Backends::global().names_where([&](const BackendTraits& traits) { return traits.automatic == world; });
  if (!names.empty()) return names.front();
  throw ConfigError("backend: auto: no backend of this program suits these ranks; choose one of " +
                    join(Backends::global().names(), ", "));
}

}  // namespace phalanx
