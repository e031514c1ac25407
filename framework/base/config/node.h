// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace phalanx::config {

/// Where a piece of configuration was written.
struct SourceLocation {
  std::string origin{};  // file, or the command-line flag
  int line = 0;          // from 1; 0 in a flag
  int column = 0;        // from 1
};

/// A piece of YAML as it was written. Whether `8` is a number or a name is for the schema to say, so a scalar is text.
struct Node {
  enum class Kind { kNull, kScalar, kList, kMap };
  struct Entry;

  Kind kind = Kind::kNull;
  SourceLocation location{};
  std::string text{};            // of a scalar, quotes and escapes resolved
  bool quoted = false;           // a scalar that was written in quotes, or as a block: a string whatever it says
  std::vector<Node> items{};     // of a list
  std::vector<Entry> entries{};  // of a map: in the order written, every key once
};

struct Node::Entry {
  std::string key;
  SourceLocation location;  // of the key
  Node value;
};

/// The map's entry for the key; null when it has none or is no map.
const Node::Entry* find(const Node& map, std::string_view key);
Node::Entry* find(Node& map, std::string_view key);

/// What was written, for messages: "ten" in quotes, `the string "10"`, `a list`, `a section`, `nothing`. Long texts are
/// cut, and line ends and other control characters are shown as spaces.
std::string what_is(const Node& node);

/// "optimizer.lr"; just the key at the root.
std::string path_of(const std::string& section, const std::string& key);

}  // namespace phalanx::config
