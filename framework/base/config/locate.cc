// SPDX-License-Identifier: Apache-2.0
#include "framework/base/config/locate.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "framework/base/config/node.h"
#include "framework/base/config/override.h"
#include "framework/base/config/parse.h"
#include "framework/base/config/read_config.h"

namespace phalanx::config {
namespace {

constexpr std::string_view kWord = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.[]";

struct Found {
  SourceLocation location;
  bool exact;  // the key itself was found, not just a section around it
};

// Splits "hosts[1]" into "hosts" and "1]". Without the character `at`, the second part is empty.
std::pair<std::string_view, std::string_view> split(std::string_view key, char at) {
  const auto position = std::min(key.find(at), key.size());
  return {key.substr(0, position), key.substr(std::min(position + 1, key.size()))};
}

const Node* item_of(const Node& list, std::string_view index) {
  std::size_t number = 0;
  for (const char c : index.substr(0, index.find(']'))) number = 10 * number + static_cast<std::size_t>(c - '0');
  return list.kind == Node::Kind::kList && number < list.items.size() ? &list.items[number] : nullptr;
}

// Sections and lists begin on a line below their key; their place is the place of the key.
SourceLocation place_of(const Node::Entry& entry) {
  return entry.value.kind == Node::Kind::kScalar ? entry.value.location : entry.location;
}

std::optional<Found> find_path(const Node& root, std::string_view path) {
  std::optional<Found> found;
  const Node* node = &root;
  while (!path.empty()) {
    const auto [key, rest] = split(path, '.');
    const auto [name, index] = split(key, '[');
    const Node::Entry* entry = find(*node, name);
    if (!entry) break;
    node = &entry->value;
    found = {place_of(*entry), rest.empty() && index.empty()};
    if (!index.empty()) {
      node = item_of(entry->value, index);
      if (!node) break;
      found = {node->location, rest.empty()};
    }
    path = rest;
  }
  return found;
}

// Returns true if the text after the key names the selected schema: "model: lenet" for "model lenet needs images".
bool names_selection(const Node& root, std::string_view key, std::string_view after) {
  const Node::Entry* entry = find(root, key);
  if (!entry || !after.starts_with(' ')) return false;
  const std::string_view word = after.substr(1, after.find_first_not_of(kWord, 1) - 1);
  if (word.empty()) return false;
  const Node::Entry* name = find(entry->value, "name");
  return entry->value.text == word || (name && name->value.text == word) || find(entry->value, word);
}

// Finds a key such as "optimizer.lr" anywhere in the text; at its beginning also "task: ..." and "model lenet ...".
std::optional<Found> first_key_in(const std::string& text, const Node& root) {
  for (std::size_t begin = text.find_first_of(kWord), end; begin != text.npos; begin = text.find_first_of(kWord, end)) {
    end = std::min(text.find_first_not_of(kWord, begin), text.size());
    std::string_view word = std::string_view(text).substr(begin, end - begin);
    while (word.ends_with('.')) word.remove_suffix(1);
    const std::string_view after = std::string_view(text).substr(end);
    const bool heads = begin == 0 && (after.starts_with(':') || names_selection(root, word, after));
    if (!heads && word.find('.') == word.npos) continue;
    const auto found = find_path(root, word);
    if (found && found->exact) return found;
  }
  return std::nullopt;
}

std::optional<SourceLocation> place(const ConfigProblem& problem, const Node& root, const std::string& file) {
  const auto by_key = find_path(root, problem.key);
  if (by_key && by_key->exact) return by_key->location;
  if (const auto named = first_key_in(problem.message, root)) return named->location;
  if (by_key) return by_key->location;
  return problem.key.empty() || file.empty() ? std::nullopt : std::optional(SourceLocation{file});
}

}  // namespace

ConfigError located(const ConfigError& error, const Sources& sources) {
  std::vector<ConfigProblem> problems = error.problems(), ignored;
  Node root;
  try {
    if (!sources.path.empty()) root = parse({read_config(sources.path), sources.path}, ignored);
  } catch (const ConfigError&) {
    return error;
  }
  for (const auto& assignment : sources.overrides) apply_override(root, assignment, ignored);
  for (auto& problem : problems) {
    if (problem.line > 0 || (!problem.origin.empty() && problem.origin != "config")) continue;
    const auto where = place(problem, root, sources.path);
    if (!where) continue;
    problem.origin = where->origin;
    problem.line = where->line;
    problem.column = where->column;
  }
  sort_by_place(problems, sources.overrides);
  return ConfigError(std::move(problems));
}

void sort_by_place(std::vector<ConfigProblem>& problems, const std::vector<std::string>& overrides) {
  const auto position = [&](const ConfigProblem& problem) {
    const auto from_flag = [&](const auto& assignment) { return problem.origin == origin_of(assignment); };
    const auto flag = std::ranges::find_if(overrides, from_flag);
    const auto source = flag == overrides.end() ? 0 : 1 + (flag - overrides.begin());
    const int line = problem.line > 0 ? problem.line : std::numeric_limits<int>::max();
    return std::tuple(source, line, problem.column);
  };
  std::ranges::stable_sort(problems, {}, position);
}

}  // namespace phalanx::config
