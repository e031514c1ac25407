// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/util/StringUtil.h>

#include "framework/base/error.h"

namespace phalanx {

/// Throws ConfigError, whose message begins with the key "loss", unless a loss fits what it is computed of. The parts
/// of the message are put together as by c10::str().
template <class... Parts>
void require_of_loss(bool fits, const Parts&... parts) {
  if (!fits) throw ConfigError(c10::str("loss: ", parts...));
}

}  // namespace phalanx
