// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "framework/base/config/visitor.h"

namespace phalanx {

/// One of the registries that a config selects from.
struct Kind {
  std::string name;  // "models"
  std::string what;  // one line
  std::shared_ptr<const config::Selection> all;
};

/// All of them, in the order in which people meet them.
const std::vector<Kind>& kinds();

/// The name of that of which this is a selection. Empty: of none, but names of its own.
std::string kind_of(const config::Selection& selection);

}  // namespace phalanx
