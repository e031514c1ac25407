#include "framework/base/config/describe.h"

#include <algorithm>
#include <array>
#include <typeindex>
#include <vector>

#include "framework/base/config/limits.h"
#include "framework/base/config/scalar.h"
#include "framework/base/text.h"

namespace phalanx::config {
namespace {

using Row = std::array<std::string, 5>;  // key, type, default, limits, help

constexpr std::size_t kWidest = 26;  // of an aligned column; a longer cell shifts only its own row

std::string format(const std::vector<Row>& rows) {
  std::array<std::size_t, 5> widths{};
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (row[i].size() <= kWidest) widths[i] = std::max(widths[i], row[i].size());
    }
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += row[i] + "  ";
      if (row[i].size() < widths[i]) line.append(widths[i] - row[i].size(), ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string text_of(bool value) { return value ? "true" : "false"; }
std::string text_of(std::int64_t value) { return std::to_string(value); }
std::string text_of(double value) { return shortest(value); }
std::string text_of(const std::string& value) { return needs_quotes(value) ? '"' + value + '"' : value; }

class DescribingVisitor final : public Visitor {
 public:
  std::string finish() const { return format(rows_); }

 private:
  bool enter(const Field& section) override {
    add(section.key + std::string(":"), "", "", "", section.help);
    ++depth_;
    return true;
  }
  void leave(const Field&) override { --depth_; }

  void visit(const Field& field, bool& value) override { scalar(field, value); }
  void visit(const Field& field, std::int64_t& value) override { scalar(field, value); }
  void visit(const Field& field, double& value) override { scalar(field, value); }
  void visit(const Field& field, std::string& value) override { scalar(field, value); }
  void visit(const Field& field, std::optional<double>& value) override {
    add(field.key, type_of(double{}), value ? text_of(*value) : "(none)", describe(field.limits), field.help);
  }
  void visit(const Field& field, std::vector<std::int64_t>& value) override { list(field, value); }
  void visit(const Field& field, std::vector<double>& value) override { list(field, value); }
  void visit(const Field& field, std::vector<std::string>& value) override { list(field, value); }

  void visit(const Field& field, Selection& selection) override {
    const std::string& selected = selection.selected();
    add(field.key + std::string(":"), "one of", selected.empty() ? "(required)" : selected, "", field.help);
    // A selection may hold one of its own kind, a chain of schedules for example.
    const std::type_index kind(typeid(selection));
    depth_ += 2;
    if (std::ranges::count(open_, kind) > 0) {
      add("...", "", "", "", "as above");
    } else {
      open_.push_back(kind);
      for (const auto& name : selection.names()) entry(selection, name);
      open_.pop_back();
    }
    depth_ -= 2;
  }

  void visit(const Field& field, SectionList& sections) override {
    const std::string fallback = sections.size() == 0 ? "[]" : std::to_string(sections.size()) + " of them";
    add(field.key + std::string(":"), "list of", fallback, "", field.help);
    ++depth_;
    sections.visit_defaults(*this);
    --depth_;
  }

  void visit(const Field& field, SectionMap& sections) override {
    add(field.key + std::string(":"), "sections", "{}", "", field.help);
    ++depth_;
    add("KEY:", "", "", "", "");
    ++depth_;
    sections.visit_defaults(*this);
    depth_ -= 2;
  }

  void entry(Selection& selection, const std::string& name) {
    --depth_;
    add("name: " + name, "", "", "", selection.help(name));
    ++depth_;
    // What is selected by default may have defaults of its own.
    if (name == selection.selected()) {
      selection.visit_selected(*this);
    } else {
      selection.visit_defaults(name, *this);
    }
  }

  template <class T>
  void scalar(const Field& field, const T& value) {
    add(field.key, type_of(value), text_of(value), describe(field.limits), field.help);
  }

  template <class T>
  void list(const Field& field, const std::vector<T>& values) {
    std::vector<std::string> texts;
    for (const auto& value : values) texts.push_back(text_of(value));
    add(field.key, std::string("list (") + type_of(T{}) + ")", "[" + join(texts, ", ") + "]", describe(field.limits),
        field.help);
  }

  void add(const std::string& key, const std::string& type, const std::string& fallback, const std::string& limits,
           const std::string& help) {
    rows_.push_back({std::string(2 * depth_, ' ') + key, type, fallback, limits, help});
  }

  std::vector<Row> rows_{{"KEY", "TYPE", "DEFAULT", "LIMITS", "HELP"}};
  std::size_t depth_ = 0;
  std::vector<std::type_index> open_;  // the kinds of selections that are being described
};

}  // namespace

std::string describe_from(const Visit& visit) {
  DescribingVisitor describing;
  visit(describing);
  return describing.finish();
}

}  // namespace phalanx::config
