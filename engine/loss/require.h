// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/util/StringUtil.h>

#include "framework/base/error.h"

namespace phalanx {

/// Throws ConfigError, with a message that starts with the key "loss", unless the arguments of a loss are valid. The
/// parts of the message are concatenated as in c10::str().
template <class... Parts>
void require_of_loss(bool fits, const Parts&... parts) {
  if (!fits) throw ConfigError(c10::str("loss: ", parts...));
}

}  // namespace phalanx
