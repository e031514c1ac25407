// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace phalanx::testing {

/// Returns the section of a model that makes tests fast and learns steadily: narrow and without dropout. Returns only
/// the name for models whose defaults already are.
std::string small_section(const std::string& model);

}  // namespace phalanx::testing
