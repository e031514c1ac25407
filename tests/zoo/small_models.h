// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace phalanx::testing {

/// A model's section with which tests are fast and learn steadily: narrow, and without dropout; the name alone where
/// its defaults are.
std::string small_section(const std::string& model);

}  // namespace phalanx::testing
