// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "framework/base/config/visitor.h"

namespace phalanx::config {

/// The keys beside `name` that a section has when `name` is selected, in the order of visit(); not those of nested
/// sections. Changes nothing.
std::vector<std::string> keys_of(const Selection& selection, const std::string& name);

/// The paths of all keys that `visit` visits: sections, selections with the fields of what is selected, and values.
/// Lists and maps of sections are one key each.
std::vector<std::string> paths_of(const Visit& visit);

/// Returns the part of `path` after its last dot: "lr" for "optimizer.lr".
inline std::string last_key(const std::string& path) { return path.substr(path.rfind('.') + 1); }

}  // namespace phalanx::config
