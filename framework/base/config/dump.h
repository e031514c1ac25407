// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "framework/base/config/visitor.h"

namespace phalanx::config {

/// dump() of config.h for what `visit` visits. Throws std::logic_error for a number that is not finite.
std::string dump_from(const Visit& visit);

}  // namespace phalanx::config
