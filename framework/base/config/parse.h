// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "framework/base/config/node.h"
#include "framework/base/error.h"

namespace phalanx::config {

/// YAML text, and what to call it in errors.
struct Source {
  const std::string& text;
  const std::string& origin;
  bool has_lines = true;  // false: a flag; its locations have no line
};

/// The document as a tree; an empty one is null. Appends to `problems`: broken syntax, duplicate keys (the first
/// counts), and what a config has no use for: anchors, aliases, tags, keys that are no scalars, several documents, and
/// sections nested deeper than 50. The tree is what can be made of the rest; after broken syntax it is null.
Node parse(const Source& source, std::vector<ConfigProblem>& problems);

}  // namespace phalanx::config
