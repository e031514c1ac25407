// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "framework/base/config/node.h"

namespace phalanx::config {

/// Why a value is refused, and what may have been meant.
struct Complaint {
  std::string message;
  std::string suggestion{};
};

// Reads a scalar as the type the schema asks for; on a complaint `value` is unchanged. Nothing is converted silently:
// only true and false are booleans, 1e3 and 3.0 are no integers, a quoted "8" is a string, numbers are finite. A string
// is any scalar, as written, so that `name: 8` needs no quotes.
std::optional<Complaint> read(const Node& node, bool& value);
std::optional<Complaint> read(const Node& node, std::int64_t& value);
std::optional<Complaint> read(const Node& node, double& value);
std::optional<Complaint> read(const Node& node, std::string& value);

// The type as messages and documentation call it.
inline const char* type_of(bool) { return "true or false"; }
inline const char* type_of(std::int64_t) { return "integer"; }
inline const char* type_of(double) { return "number"; }
inline const char* type_of(const std::string&) { return "string"; }

/// The shortest text that reads back as the same number: "0.1", "5", "1000000", "1e-05".
std::string shortest(double value);

/// Whether a string has to be in quotes to be one for every YAML reader: empty, with special characters, or like a
/// number, a boolean, a date or null.
bool needs_quotes(const std::string& text);

}  // namespace phalanx::config
