// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "framework/base/config/node.h"

namespace phalanx::config {

/// The reason why a value is refused, and the value that may have been meant.
struct ValueProblem {
  std::string message;
  std::string suggestion{};
};

// Read a scalar as the type that the schema asks for; on a complaint `value` is unchanged. Nothing is converted
// silently: only true and false are booleans, 1e3 and 3.0 are not integers, a quoted "8" is a string, and numbers are
// finite. Every scalar can be read as a string, as written, so that `name: 8` needs no quotes.
std::optional<ValueProblem> read(const Node& node, bool& value);
std::optional<ValueProblem> read(const Node& node, std::int64_t& value);
std::optional<ValueProblem> read(const Node& node, double& value);
std::optional<ValueProblem> read(const Node& node, std::string& value);

// Return the name of the type for messages and documentation.
inline const char* type_of(bool) { return "true or false"; }
inline const char* type_of(std::int64_t) { return "integer"; }
inline const char* type_of(double) { return "number"; }
inline const char* type_of(const std::string&) { return "string"; }

/// Returns the shortest text that reads back as the same number: "0.1", "5", "1000000", "1e-05".
std::string shortest(double value);

/// Returns true if a string needs quotes so that every YAML reader takes it for a string: if it is empty, has special
/// characters, or looks like a number, a boolean, a date or null.
bool needs_quotes(const std::string& text);

}  // namespace phalanx::config
