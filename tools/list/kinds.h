// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "framework/base/config/visitor.h"

namespace phalanx {

/// One of the registries that a config selects from.
struct Kind {
  std::string name;  // "models"
  std::string what;  // description in one line
  std::shared_ptr<const config::Selection> all;

  /// Returns what the thing of this name supports with its default fields: "block_chain". Null: the kind says nothing.
  std::function<std::vector<std::string>(const std::string& name)> supports{};
};

/// Returns all kinds, in the order in which users meet them.
const std::vector<Kind>& kinds();

/// Returns the name of the kind that a selection belongs to. Empty: it belongs to none, and has its own names.
std::string kind_of(const config::Selection& selection);

/// Returns the fields that `visit` visits, in its order, for programs to read. Each has a `key`, `help` and `type`, and
/// more keys that depend on the type:
///
///     boolean, integer, number, string   default; numbers may have minimum and maximum, with exclusive: true if these
///                                        two are not allowed themselves; strings may have choices
///     list                               items (integer, number or string), default, and limits of each item as above
///     section                            fields
///     list of sections, sections by key  fields of each section
///     selection                          default, the name that is selected (null: required), and the kind that is
///                                        selected from, as tools:list calls it, or names
///
/// A number whose default is null may be omitted.
nlohmann::ordered_json fields_of(const config::Visit& visit);

}  // namespace phalanx
