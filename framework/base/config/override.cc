// SPDX-License-Identifier: Apache-2.0
#include "framework/base/config/override.h"

#include <algorithm>
#include <utility>

#include "framework/base/config/parse.h"

namespace phalanx::config {
namespace {

// Returns an empty list if the path is not valid.
std::vector<std::string> split_path(const std::string& path) {
  std::vector<std::string> keys(1);
  for (const char c : path) {
    if (c == '.') {
      keys.emplace_back();
    } else {
      keys.back() += c;
    }
  }
  if (std::ranges::any_of(keys, &std::string::empty)) keys.clear();
  return keys;
}

// Turns a node that is not a map into one, as the flag implies. If the schema has no section there, the error belongs
// to the flag and not to the file.
void make_map(Node& node, const SourceLocation& location) {
  if (node.kind == Node::Kind::kMap) return;
  Node map{.kind = Node::Kind::kMap, .location = location};
  if (node.kind == Node::Kind::kScalar) {
    const SourceLocation written = node.location;
    map.entries.push_back({"name", written, std::move(node)});
  }
  node = std::move(map);
}

}  // namespace

std::string origin_of(const std::string& assignment) { return "--set " + assignment; }

void apply_override(Node& root, const std::string& assignment, std::vector<ConfigProblem>& problems) {
  const std::string origin = origin_of(assignment);
  const std::size_t equals = std::min(assignment.find('='), assignment.size());
  const auto keys = split_path(assignment.substr(0, equals));
  if (keys.empty() || equals == assignment.size()) {
    problems.push_back({.origin = origin, .message = "expected key.path=value"});
    return;
  }
  const std::size_t known = problems.size();
  Node value = parse({assignment.substr(equals + 1), origin, false}, problems);
  if (problems.size() > known) return;

  value.location = {origin};
  Node* node = &root;
  for (const auto& key : keys) {
    make_map(*node, value.location);
    Node::Entry* entry = find(*node, key);
    if (!entry) entry = &node->entries.emplace_back(Node::Entry{key, value.location, {}});
    node = &entry->value;
  }
  *node = std::move(value);
}

}  // namespace phalanx::config
