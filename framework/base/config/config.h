// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "framework/base/config/describe.h"
#include "framework/base/config/visitor.h"

namespace phalanx::config {

// Implements load() and load_text() of config.h for the fields that `visit` visits.

void load_file_into(const Visit& visit, const std::string& path, const std::vector<std::string>& overrides);
void load_text_into(const Visit& visit, const std::string& text, const std::string& origin,
                    const std::vector<std::string>& overrides);

/// Implements dump() of config.h for the fields that `visit` visits. Throws std::logic_error for a number that is not
/// finite.
std::string dump_from(const Visit& visit);

/// Fills `root` from a YAML file and then from `overrides`, each "key.path=value" where the value is YAML. A field that
/// is in neither keeps its value, so the struct sets the defaults.
///
///     optimizer.lr=0.05     sets one field
///     model.name=mlp        selects another schema; keys of the file that it does not know are errors
///     model=mlp             replaces the whole section: the same as model={name: mlp}
///
/// Throws ConfigError with every problem of the file and the overrides: an unreadable file, wrong YAML syntax, an
/// unknown or duplicate key (with the nearest valid key), a wrong type, a value out of limits, or an unknown name in a
/// selection (with the nearest and all known names). `root` is then partly filled.
template <class Config>
void load(Config& root, const std::string& path, const std::vector<std::string>& overrides = {}) {
  load_file_into([&](Visitor& visitor) { root.visit(visitor); }, path, overrides);
}

/// Like load(), but from YAML text. `origin` takes the place of the file name in errors.
template <class Config>
void load_text(Config& root, const std::string& text, const std::string& origin,
               const std::vector<std::string>& overrides = {}) {
  load_text_into([&](Visitor& visitor) { root.visit(visitor); }, text, origin, overrides);
}

/// Returns one value of any type that a field may have. It is read as the field `key` of a file with the line "key:
/// yaml".
///
///     const auto model = config::load_as<Models::Choice>("model", "{name: mlp, hidden: [8]}", "--model");
template <class T>
T load_as(const char* key, const std::string& yaml, const std::string& origin) {
  T value{};
  load_text_into([&](Visitor& visitor) { visitor(key, value, ""); }, std::string(key) + ": " + yaml, origin, {});
  return value;
}

/// Returns `root` as YAML that load() reads back to an equal struct: every field, including defaults, in the order of
/// visit().
template <class Config>
std::string dump(Config& root) {
  return dump_from([&](Visitor& visitor) { root.visit(visitor); });
}

/// Returns one value of any type that a field may have as YAML, under the key `key`.
template <class T>
std::string dump_as(const char* key, T value) {
  return dump_from([&](Visitor& visitor) { visitor(key, value, ""); });
}

/// Describes the schema for people: every key with its type, default, limits and help, and every selection with all its
/// names. Lines have at most 100 columns unless a single word of the schema is too long.
///
/// If `section` is given, only that key and the keys below it are described. A name of a selection counts as a section:
/// "strategy.gossip". Throws ConfigError if the schema has no such section, with the nearest one.
template <class Config>
std::string describe(Config& root, const std::string& section = "") {
  return describe_from([&](Visitor& visitor) { root.visit(visitor); }, section);
}

}  // namespace phalanx::config
