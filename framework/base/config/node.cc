// SPDX-License-Identifier: Apache-2.0
#include "framework/base/config/node.h"

#include <algorithm>

namespace phalanx::config {
namespace {

std::string quote(std::string text) {
  constexpr std::size_t kLongest = 60;
  if (text.size() > kLongest) {
    std::size_t cut = kLongest - 3;
    while (cut > 0 && (text[cut] & 0xc0) == 0x80) --cut;  // not within a UTF-8 character
    text = text.substr(0, cut) + "...";
  }
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = ' ';
  }
  return '"' + text + '"';
}

}  // namespace

Node::Entry* find(Node& map, std::string_view key) {
  const auto entry = std::ranges::find(map.entries, key, &Node::Entry::key);
  return entry == map.entries.end() ? nullptr : &*entry;
}

const Node::Entry* find(const Node& map, std::string_view key) { return find(const_cast<Node&>(map), key); }

std::string what_is(const Node& node) {
  switch (node.kind) {
    case Node::Kind::kNull:
      return "nothing";
    case Node::Kind::kScalar:
      return (node.quoted ? "the string " : "") + quote(node.text);
    case Node::Kind::kList:
      return "a list";
    case Node::Kind::kMap:
      return "a section";
  }
  return "";
}

std::string path_of(const std::string& section, const std::string& key) {
  const std::string name = key.empty() ? "\"\"" : key;
  return section.empty() ? name : section + "." + name;
}

}  // namespace phalanx::config
