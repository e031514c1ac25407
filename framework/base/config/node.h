// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace phalanx::config {

/// The place where a piece of configuration was written.
struct SourceLocation {
  std::string origin{};  // file, or the command-line flag
  int line = 0;          // from 1; 0 in a flag
  int column = 0;        // from 1
};

/// An entry of a map. A template, because a node contains entries and an entry contains a node.
template <class Value>
struct MapEntry {
  std::string key;
  SourceLocation location;  // of the key
  Value value;
};

/// A piece of YAML as it was written. A scalar is text, because only the schema knows whether `8` is a number or a
/// name.
struct Node {
  enum class Kind { kNull, kScalar, kList, kMap };
  using Entry = MapEntry<Node>;

  Kind kind = Kind::kNull;
  SourceLocation location{};
  std::string text{};            // scalar: its text, with quotes and escapes resolved
  bool quoted = false;           // scalar: written in quotes or as a block, and therefore always a string
  std::vector<Node> items{};     // list: its items
  std::vector<Entry> entries{};  // map: its entries in the order written, each key once
};

/// Returns the map's entry for the key, or null if the map has no such key or the node is not a map.
const Node::Entry* find(const Node& map, std::string_view key);
Node::Entry* find(Node& map, std::string_view key);

/// Describes the text of a node for messages: "ten" in quotes, `the string "10"`, `a list`, `a section`, `nothing`.
/// Long texts are cut, and line ends and other control characters are replaced by spaces.
std::string what_is(const Node& node);

/// Returns "optimizer.lr", or just the key at the root.
std::string path_of(const std::string& section, const std::string& key);

}  // namespace phalanx::config
