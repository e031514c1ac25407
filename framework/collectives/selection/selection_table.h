// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "framework/collectives/selection/rule.h"

namespace phalanx {

/// The selection of algorithms: a list of rules, of which the first that matches wins. Operations without a matching
/// rule run natively. If the algorithm of a rule does not suit the arguments (Algorithm::suits), the next matching rule
/// is tried. A value type.
class SelectionTable {
 public:
  SelectionTable() = default;

  /// Throws ConfigError with all problems of the rules, as returned by problems_of().
  explicit SelectionTable(std::vector<SelectionRule> rules);
  SelectionTable(std::initializer_list<SelectionRule> rules) : SelectionTable(std::vector<SelectionRule>(rules)) {}

  /// Returns a table with the rules of this one, followed by the rules of `next`. Rules of `next` may be unreachable
  /// here, because rules written by hand take precedence over measured ones.
  SelectionTable followed_by(const SelectionTable& next) const;

  bool empty() const { return rules_.empty(); }
  const std::vector<SelectionRule>& rules() const { return rules_; }
  const std::vector<ParsedRule>& parsed() const { return parsed_; }

  /// Returns the backends that rules name, each once. They must be connected in addition to the group's own backend.
  std::vector<std::string> backends() const;

  /// Returns true if a rule holds only inside hosts or only between them.
  bool depends_on_scope() const;

  /// Returns the table as text for a terminal, one line per rule:
  ///
  ///     operation   up to  ranks  scope  device  backend  algorithm
  ///     all_reduce  64 KB  any    host   any     own      recursive_doubling
  ///     all         any    any    any    any     own      native
  std::string to_text() const;

 private:
  std::vector<SelectionRule> rules_;
  std::vector<ParsedRule> parsed_;
};

}  // namespace phalanx
