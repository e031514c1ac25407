// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "framework/base/config/visitor.h"

namespace phalanx::config {

/// Returns the keys besides `name` that a section has when `name` is selected, in the order of visit(), without the
/// keys of nested sections. Does not change the selection.
std::vector<std::string> keys_of(const Selection& selection, const std::string& name);

/// Returns the paths of all keys that `visit` visits: sections, selections with the fields of the selected name, and
/// values. A list or map of sections counts as one key.
std::vector<std::string> paths_of(const Visit& visit);

/// Returns the part of `path` after its last dot: "lr" for "optimizer.lr".
inline std::string last_key(const std::string& path) { return path.substr(path.rfind('.') + 1); }

}  // namespace phalanx::config
