// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "framework/collectives/selection/rule.h"

namespace phalanx {

/// Which algorithm each operation takes: rules of which the first that matches wins, and after them native for all.
/// A rule whose algorithm does not suit the arguments (Algorithm::suits) is passed over, and the next one that matches
/// is tried. A value.
class SelectionTable {
 public:
  SelectionTable() = default;

  /// Throws ConfigError with all problems_of() the rules.
  explicit SelectionTable(std::vector<SelectionRule> rules);
  SelectionTable(std::initializer_list<SelectionRule> rules) : SelectionTable(std::vector<SelectionRule>(rules)) {}

  /// This table's rules, and `next`'s where none of them matches. Here rules of `next` may be unreachable: what was
  /// written by hand goes before what was measured.
  SelectionTable followed_by(const SelectionTable& next) const;

  bool empty() const { return rules_.empty(); }
  const std::vector<SelectionRule>& rules() const { return rules_; }
  const std::vector<ParsedRule>& parsed() const { return parsed_; }

  /// The backends that rules name, each once: they must be connected beside the group's own.
  std::vector<std::string> backends() const;

  /// For a terminal, a line for each rule:
  ///
  ///     operation   up to  ranks  backend  algorithm
  ///     all_reduce  64 KB  any    own      recursive_doubling
  ///     all         any    any    own      native
  std::string to_text() const;

 private:
  std::vector<SelectionRule> rules_;
  std::vector<ParsedRule> parsed_;
};

}  // namespace phalanx
