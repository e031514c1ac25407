// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "framework/base/config/describe.h"
#include "framework/base/config/visitor.h"

namespace phalanx::config {

// load() and load_text() of config.h for what `visit` visits.

void load_file_into(const Visit& visit, const std::string& path, const std::vector<std::string>& overrides);
void load_text_into(const Visit& visit, const std::string& text, const std::string& origin,
                    const std::vector<std::string>& overrides);

/// dump() of config.h for what `visit` visits. Throws std::logic_error for a number that is not finite.
std::string dump_from(const Visit& visit);

/// Fills `root` from a YAML file and then from `overrides`, each "key.path=value" where the value is YAML. What neither
/// has keeps its value: the defaults are those of the struct.
///
///     optimizer.lr=0.05     sets one field
///     model.name=mlp        selects another schema; keys of the file that it does not know are errors
///     model=mlp             replaces the whole section: the same as model={name: mlp}
///
/// Throws ConfigError with every problem of the file and the overrides: unreadable file, YAML syntax, unknown or
/// duplicate key (with the nearest valid key), wrong type, value out of limits, unknown name in a selection (with the
/// nearest and all known names). `root` is then partly filled.
template <class Config>
void load(Config& root, const std::string& path, const std::vector<std::string>& overrides = {}) {
  load_file_into([&](Visitor& visitor) { root.visit(visitor); }, path, overrides);
}

/// The same for YAML text; `origin` stands for the file name in errors.
template <class Config>
void load_text(Config& root, const std::string& text, const std::string& origin,
               const std::vector<std::string>& overrides = {}) {
  load_text_into([&](Visitor& visitor) { root.visit(visitor); }, text, origin, overrides);
}

/// One value of any type that a field may have, as the field `key` of a file: what "key: yaml" says.
///
///     const auto model = config::load_as<Models::Choice>("model", "{name: mlp, hidden: [8]}", "--model");
template <class T>
T load_as(const char* key, const std::string& yaml, const std::string& origin) {
  T value{};
  load_text_into([&](Visitor& visitor) { visitor(key, value, ""); }, std::string(key) + ": " + yaml, origin, {});
  return value;
}

/// `root` as YAML that load() reads back to an equal struct: every field, defaults included, in the order of visit().
template <class Config>
std::string dump(Config& root) {
  return dump_from([&](Visitor& visitor) { root.visit(visitor); });
}

/// The same of one field, of any type that a field may have, as the key `key`.
template <class T>
std::string dump_as(const char* key, T value) {
  return dump_from([&](Visitor& visitor) { visitor(key, value, ""); });
}

/// The schema for people: every key with type, default, limits and help; every selection with all its names; in lines
/// of at most 100 columns where the schema's own words permit it.
///
/// `section`: only that key and what is below it. What may be selected counts as a section: "strategy.gossip". Throws
/// ConfigError for one that the schema does not have, with the nearest.
template <class Config>
std::string describe(Config& root, const std::string& section = "") {
  return describe_from([&](Visitor& visitor) { root.visit(visitor); }, section);
}

}  // namespace phalanx::config
