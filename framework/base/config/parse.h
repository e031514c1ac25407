// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "framework/base/config/node.h"
#include "framework/base/error.h"

namespace phalanx::config {

/// YAML text, and the name for it in errors.
struct Source {
  const std::string& text;
  const std::string& origin;
  bool has_lines = true;  // false for a flag, whose locations have no line
};

/// Returns the document as a tree; an empty document is null. Appends to `problems`: broken syntax, duplicate keys (the
/// first counts), and YAML that a config does not support: anchors, aliases, tags, keys that are not scalars, several
/// documents, and sections nested deeper than 50. The tree contains everything else. After broken syntax it is null.
Node parse(const Source& source, std::vector<ConfigProblem>& problems);

}  // namespace phalanx::config
