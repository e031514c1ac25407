// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
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

/// The fields that `visit` visits, in its order, for programs to read. Each has a `key`, `help` and `type`, and what
/// goes with the type:
///
///     boolean, integer, number, string   default; the latter may have minimum and maximum, with exclusive: true where
///                                        these two are refused themselves, or choices
///     list                               items (integer, number or string), default, and limits of each item as above
///     section                            fields
///     list of sections, sections by key  fields, of each of them
///     selection                          default, the name that is selected (null: it must be written), and the kind
///                                        of what is selected, as tools:list calls it, or names
///
/// A number whose default is null may be left out.
nlohmann::ordered_json fields_of(const config::Visit& visit);

}  // namespace phalanx
