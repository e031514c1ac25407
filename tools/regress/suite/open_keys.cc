// SPDX-License-Identifier: Apache-2.0
#include "tools/regress/suite/open_keys.h"

#include <utility>

#include "framework/base/config/scalar.h"

namespace phalanx::regress {
namespace {

using config::Node;

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c == '\n' ? "\\n" : std::string(1, c);
  }
  return result + "\"";
}

// Returns true for a text that YAML would read differently without quotes inside {...} or [...], where more characters
// are special.
bool needs_quotes(const Node& scalar) {
  if (scalar.quoted) return config::needs_quotes(scalar.text);
  return scalar.text.find_first_of(",[]{}#\"'\n") != std::string::npos;
}

Node text_node(const Node& node) {
  if (node.kind == Node::Kind::kScalar && !node.quoted) return node;
  return {.kind = Node::Kind::kScalar, .location = node.location, .text = to_line(node)};
}

// Returns {key: value}.
Node section(const std::string& key, Node value) {
  const auto location = value.location;
  Node node{.kind = Node::Kind::kMap, .location = location};
  node.entries.push_back({key, location, std::move(value)});
  return node;
}

Node list_of_texts(const Node& node) {
  Node list{.kind = Node::Kind::kList, .location = node.location};
  if (node.kind == Node::Kind::kList) {
    for (const auto& item : node.items) list.items.push_back(text_node(item));
  } else {
    list.items.push_back(text_node(node));
  }
  return list;
}

void rewrite_settings(Node& settings) {
  for (auto& entry : settings.entries) entry.value = section("value", text_node(entry.value));
}

void rewrite_axes(Node& axes, const std::string& path, bool one_is_enough, std::vector<ConfigProblem>& problems) {
  for (auto& [key, location, value] : axes.entries) {
    const bool is_list = value.kind == Node::Kind::kList && !value.items.empty();
    if (!is_list && !one_is_enough) {
      problems.push_back({.origin = value.location.origin,
                          .line = value.location.line,
                          .column = value.location.column,
                          .key = config::path_of(path, key),
                          .message = "expected a list of values, got " +
                                     (value.kind == Node::Kind::kList ? "an empty one" : config::what_is(value))});
    }
    value = section("values", list_of_texts(value));
  }
}

void rewrite_entry(Node& entry, const std::string& path, std::vector<ConfigProblem>& problems) {
  if (auto* set = find(entry, "set")) rewrite_settings(set->value);
  if (auto* matrix = find(entry, "matrix")) rewrite_axes(matrix->value, path + ".matrix", false, problems);
  auto* exclude = find(entry, "exclude");
  if (exclude == nullptr) return;
  for (auto& item : exclude->value.items) {
    if (item.kind != Node::Kind::kMap) continue;
    rewrite_axes(item, path + ".exclude", true, problems);
    item = section("when", item);
  }
}

}  // namespace

std::string to_line(const Node& node) {
  std::string text;
  switch (node.kind) {
    case Node::Kind::kNull:
      return "null";
    case Node::Kind::kScalar:
      return needs_quotes(node) ? quoted(node.text) : node.text;
    case Node::Kind::kList:
      for (const auto& item : node.items) text += (text.empty() ? "" : ", ") + to_line(item);
      return "[" + text + "]";
    case Node::Kind::kMap:
      for (const auto& entry : node.entries) {
        text += (text.empty() ? "" : ", ") + entry.key + ": " + to_line(entry.value);
      }
      return "{" + text + "}";
  }
  return text;
}

void rewrite_open_keys(Node& suite, std::vector<ConfigProblem>& problems) {
  auto* cases = find(suite, "cases");
  if (cases == nullptr) return;
  for (std::size_t i = 0; i < cases->value.items.size(); ++i) {
    rewrite_entry(cases->value.items[i], "cases[" + std::to_string(i) + "]", problems);
  }
}

}  // namespace phalanx::regress
