#pragma once

#include <string>
#include <vector>

#include "framework/base/config/visitor.h"

namespace phalanx::config {

/// The keys beside `name` that a section has when `name` is selected, in the order of visit(); not those of nested
/// sections. Changes nothing.
std::vector<std::string> keys_of(const Selection& selection, const std::string& name);

}  // namespace phalanx::config
