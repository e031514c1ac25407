// SPDX-License-Identifier: Apache-2.0
#include "framework/base/config/keys.h"

#include "framework/base/config/node.h"

namespace phalanx::config {
namespace {

enum class Depth { kTop, kAll };

class PathVisitor final : public Visitor {
 public:
  explicit PathVisitor(Depth depth) : depth_(depth) {}

  std::vector<std::string> paths;

 private:
  bool enter(const Field& section) override {
    add(section);
    if (depth_ == Depth::kTop) return false;
    sections_.push_back(paths.back());
    return true;
  }
  void leave(const Field&) override { sections_.pop_back(); }
  void visit(const Field& field, bool&) override { add(field); }
  void visit(const Field& field, std::int64_t&) override { add(field); }
  void visit(const Field& field, double&) override { add(field); }
  void visit(const Field& field, std::string&) override { add(field); }
  void visit(const Field& field, std::optional<double>&) override { add(field); }
  void visit(const Field& field, std::vector<std::int64_t>&) override { add(field); }
  void visit(const Field& field, std::vector<double>&) override { add(field); }
  void visit(const Field& field, std::vector<std::string>&) override { add(field); }
  void visit(const Field& field, Selection& selection) override {
    if (!enter(field)) return;
    selection.visit_selected(*this);
    leave(field);
  }
  void visit(const Field& field, SectionList&) override { add(field); }
  void visit(const Field& field, SectionMap&) override { add(field); }

  void add(const Field& field) { paths.push_back(path_of(sections_.empty() ? "" : sections_.back(), field.key)); }

  Depth depth_;
  std::vector<std::string> sections_;  // paths of the sections that are being visited
};

}  // namespace

std::vector<std::string> keys_of(const Selection& selection, const std::string& name) {
  PathVisitor visitor(Depth::kTop);
  selection.visit_defaults(name, visitor);
  return visitor.paths;
}

std::vector<std::string> paths_of(const Visit& visit) {
  PathVisitor visitor(Depth::kAll);
  visit(visitor);
  return visitor.paths;
}

}  // namespace phalanx::config
