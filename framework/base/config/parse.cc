// SPDX-License-Identifier: Apache-2.0
#include "framework/base/config/parse.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <optional>
#include <sstream>
#include <string>
#include <unordered_map>
#include <utility>

namespace phalanx::config {
namespace {

constexpr std::size_t kDeepest = 50;

// Builds the tree from the parser's events. yaml-cpp's own tree is not usable, because it drops duplicate keys and the
// places of keys.
class TreeBuilder final : public YAML::EventHandler {
 public:
  TreeBuilder(const Source& source, std::vector<ConfigProblem>& problems) : source_(source), problems_(problems) {}

  Node take() { return std::move(root_); }
  SourceLocation location_of(const YAML::Mark& mark) const {
    if (!source_.has_lines || mark.is_null()) return {source_.origin};
    return {source_.origin, mark.line + 1, mark.column + 1};
  }

  void OnDocumentStart(const YAML::Mark& mark) override {
    // This must throw instead of recording a problem: at a stray comma the parser would start new documents forever.
    if (std::exchange(started_, true)) throw YAML::ParserException(mark, "more text after the end of the config");
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override { add({.location = location_of(mark)}); }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t, const std::string& text) override {
    check_tag(mark, tag);
    add({.kind = Node::Kind::kScalar, .location = location_of(mark), .text = text, .quoted = tag == "!"});
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    open(mark, tag, Node::Kind::kList);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t, YAML::EmitterStyle::value) override {
    open(mark, tag, Node::Kind::kMap);
  }
  void OnMapEnd() override { close(); }

  // An anchor alone would be harmless, but it is written only for an alias.
  void OnAnchor(const YAML::Mark& mark, const std::string& name) override {
    complain(location_of(mark), "anchors and aliases are not supported: write the value again instead of &" + name);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { add({.location = location_of(mark)}); }

 private:
  struct Key {
    std::string text;
    SourceLocation location;
    bool dropped;  // the value is read and discarded
  };
  struct Open {
    Node node;
    std::optional<Key> key{};                      // of a map: key whose value comes next
    std::unordered_map<std::string, int> lines{};  // of a map: line in which each of its keys was first written
  };

  void complain(const SourceLocation& location, const std::string& message, const std::string& key = {}) {
    problems_.push_back(
        {.origin = location.origin, .line = location.line, .column = location.column, .key = key, .message = message});
  }

  void check_tag(const YAML::Mark& mark, const std::string& tag) {
    if (tag.size() > 1) complain(location_of(mark), "tags are not supported: " + tag);
  }

  void open(const YAML::Mark& mark, const std::string& tag, Node::Kind kind) {
    check_tag(mark, tag);
    // This is far more than any schema needs, and far less than would overflow the stack of a recursive walk over the
    // tree.
    if (open_.size() == kDeepest) throw YAML::ParserException(mark, "nested too deeply");
    open_.push_back({{.kind = kind, .location = location_of(mark)}});
  }

  void close() {
    Node node = std::move(open_.back().node);
    open_.pop_back();
    add(std::move(node));
  }

  void add(Node node) {
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& parent = open_.back();
    if (parent.node.kind == Node::Kind::kList) {
      parent.node.items.push_back(std::move(node));
    } else if (!parent.key) {
      parent.key = key_of(node);
    } else {
      const Key key = *std::exchange(parent.key, std::nullopt);
      if (key.dropped) return;
      // The parser's mark for a missing value is the place where the parser noticed that it is missing.
      if (node.kind == Node::Kind::kNull) node.location = key.location;
      parent.node.entries.push_back({key.text, key.location, std::move(node)});
    }
  }

  Key key_of(const Node& node) {
    const bool is_word = node.kind == Node::Kind::kScalar;
    if (!is_word) complain(node.location, "expected a word as key, got " + what_is(node), path());
    if (!is_word) return {node.text, node.location, true};
    const auto [first, is_new] = open_.back().lines.try_emplace(node.text, node.location.line);
    if (!is_new) {
      const std::string where = first->second > 0 ? ", first written in line " + std::to_string(first->second) : "";
      complain(node.location, "duplicate key" + where, path_of(path(), node.text));
    }
    return {node.text, node.location, !is_new};
  }

  // Returns the path of the map that is being read.
  std::string path() const {
    std::string path;
    for (const Open& open : open_) {
      if (open.key) path = path_of(path, open.key->text);
    }
    return path;
  }

  const Source& source_;
  std::vector<ConfigProblem>& problems_;
  std::vector<Open> open_;
  Node root_;
  bool started_ = false;
};

// Returns true if a line is indented with tabs. The parser's message for that is true but does not help.
bool indents_with_tabs(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find_first_not_of(' ');
    if (first != line.npos && line[first] == '\t') return true;
  }
  return false;
}

}  // namespace

Node parse(const Source& source, std::vector<ConfigProblem>& problems) {
  TreeBuilder builder(source, problems);
  try {
    std::istringstream stream(source.text);
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
    return builder.take();
  } catch (const YAML::Exception& error) {
    const SourceLocation location = builder.location_of(error.mark);
    const std::string hint = indents_with_tabs(source.text) ? " (YAML requires spaces for indentation, not tabs)" : "";
    problems.push_back({.origin = location.origin,
                        .line = location.line,
                        .column = location.column,
                        .message = "YAML syntax: " + error.msg + hint});
    return {.location = {source.origin}};
  }
}

}  // namespace phalanx::config
