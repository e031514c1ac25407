#include "framework/base/config/keys.h"

namespace phalanx::config {
namespace {

class KeyVisitor final : public Visitor {
 public:
  std::vector<std::string> keys;

 private:
  bool enter(const Field& section) override {
    keys.emplace_back(section.key);
    return false;
  }
  void leave(const Field&) override {}
  void visit(const Field& field, bool&) override { keys.emplace_back(field.key); }
  void visit(const Field& field, std::int64_t&) override { keys.emplace_back(field.key); }
  void visit(const Field& field, double&) override { keys.emplace_back(field.key); }
  void visit(const Field& field, std::string&) override { keys.emplace_back(field.key); }
  void visit(const Field& field, std::optional<double>&) override { keys.emplace_back(field.key); }
  void visit(const Field& field, std::vector<std::int64_t>&) override { keys.emplace_back(field.key); }
  void visit(const Field& field, std::vector<double>&) override { keys.emplace_back(field.key); }
  void visit(const Field& field, std::vector<std::string>&) override { keys.emplace_back(field.key); }
  void visit(const Field& field, Selection&) override { keys.emplace_back(field.key); }
  void visit(const Field& field, SectionList&) override { keys.emplace_back(field.key); }
  void visit(const Field& field, SectionMap&) override { keys.emplace_back(field.key); }
};

}  // namespace

std::vector<std::string> keys_of(const Selection& selection, const std::string& name) {
  KeyVisitor visitor;
  selection.visit_defaults(name, visitor);
  return visitor.keys;
}

}  // namespace phalanx::config
