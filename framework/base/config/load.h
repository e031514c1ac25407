// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "framework/base/config/visitor.h"

namespace phalanx::config {

// load() and load_text() of config.h for what `visit` visits.

void load_file_into(const Visit& visit, const std::string& path, const std::vector<std::string>& overrides);
void load_text_into(const Visit& visit, const std::string& text, const std::string& origin,
                    const std::vector<std::string>& overrides);

}  // namespace phalanx::config
