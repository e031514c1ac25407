// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "framework/base/config/node.h"
#include "framework/base/config/scalar.h"
#include "framework/base/config/visitor.h"
#include "framework/base/error.h"

namespace phalanx::config {

/// Gives the fields that it visits the values of a tree, and collects everything that does not fit. A field that is not
/// in the tree, or whose value is refused, keeps its own value.
///
///     LoadingVisitor loading(root);
///     config.visit(loading);
///     auto problems = loading.finish();
class LoadingVisitor final : public Visitor {
 public:
  explicit LoadingVisitor(const Node& root);  // a map or null; must outlive the visitor

  /// Returns all problems, in the order in which they were found. Call once, after the visit.
  std::vector<ConfigProblem> finish();

  void retired(const char* key, const char* replacement) override;
  void renamed(const char* former, const char* key) override;

 private:
  // A section that is being visited.
  struct Frame {
    const Node* node = nullptr;  // its map; null if the tree has none
    std::string path{};
    std::vector<std::string> keys{};               // keys visited so far
    const Selection* selection = nullptr;          // selection to which the section belongs, if any
    const Node* name = nullptr;                    // node that names the selected schema
    std::map<std::string, const Node*> renamed{};  // values that are written under former keys, by present key

    // Returns the entry of the map with this key, or null.
    const Node::Entry* find(const std::string& key) const { return node ? config::find(*node, key) : nullptr; }
  };
  struct UnknownKey {
    std::size_t problem;  // index into problems_
    std::string key;
  };

  bool enter(const Field& section) override;
  void leave(const Field& section) override;
  void visit(const Field& field, bool& value) override { load(field, value); }
  void visit(const Field& field, std::int64_t& value) override { load(field, value); }
  void visit(const Field& field, double& value) override { load(field, value); }
  void visit(const Field& field, std::string& value) override { load(field, value); }
  void visit(const Field& field, std::optional<double>& value) override;
  void visit(const Field& field, std::vector<std::int64_t>& value) override { load_list(field, value); }
  void visit(const Field& field, std::vector<double>& value) override { load_list(field, value); }
  void visit(const Field& field, std::vector<std::string>& value) override { load_list(field, value); }
  void visit(const Field& field, Selection& value) override;
  void visit(const Field& field, SectionList& value) override;
  void visit(const Field& field, SectionMap& value) override;

  template <class T>
  void load(const Field& field, T& value);
  template <class T>
  void load_list(const Field& field, std::vector<T>& value);
  template <class T>
  bool accept(const Field& field, const Node& node, const std::string& path, T& value);
  bool select(const Node* node, const Node* name, const std::string& path, Selection& selection);

  const Node* take(const std::string& key);
  std::string path_to(const std::string& key) const { return path_of(frames_.back().path, key); }
  void close();
  void report_unknown(const Frame& frame, const Node::Entry& entry);
  void report(const SourceLocation& location, const std::string& path, const ValueProblem& complaint);

  SourceLocation root_location_;
  std::vector<Frame> frames_;
  std::vector<ConfigProblem> problems_;
  std::vector<UnknownKey> unknown_;
  int unknown_keys_ = 0;            // number so far, over all sections
  std::vector<std::string> paths_;  // of all fields visited; a key in a wrong section may mean one of them
};

}  // namespace phalanx::config
