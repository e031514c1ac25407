// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "framework/base/config/visitor.h"

namespace phalanx::config {

/// Implements describe() of config.h for the fields that `visit` visits.
std::string describe_from(const Visit& visit, const std::string& section = "");

}  // namespace phalanx::config
