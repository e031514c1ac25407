// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/backend.h"

#include "framework/base/cores.h"

namespace phalanx {

bool wants_progress_thread(const ConnectOptions& options) {
  return options.progress_thread.value_or(options.rank_info.local_size < usable_cores());
}

}  // namespace phalanx
