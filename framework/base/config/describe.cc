// SPDX-License-Identifier: Apache-2.0
#include "framework/base/config/describe.h"

#include <algorithm>
#include <array>
#include <sstream>
#include <typeindex>
#include <vector>

#include "framework/base/config/keys.h"
#include "framework/base/config/limits.h"
#include "framework/base/config/node.h"
#include "framework/base/config/scalar.h"
#include "framework/base/error.h"
#include "framework/base/text.h"

namespace phalanx::config {
namespace {

struct Row {
  std::string path;  // "strategy.gossip.every"
  std::size_t depth;
  std::array<std::string, 4> cells;  // key, type, default, limits
  std::string help;
};

const std::array<std::string, 4> kTitles = {"KEY", "TYPE", "DEFAULT", "LIMITS"};
constexpr std::size_t kWidest = 26;    // columns of an aligned cell; a longer cell shifts only its own row
constexpr std::size_t kColumns = 100;  // longest line

using Widths = std::array<std::size_t, 4>;

Widths widths_of(const std::vector<Row>& rows) {
  Widths widths{};
  const auto widen = [&](const std::array<std::string, 4>& cells, std::size_t indentation) {
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const std::size_t width = cells[i].size() + (i == 0 ? indentation : 0);
      if (width <= kWidest) widths[i] = std::max(widths[i], width);
    }
  };
  widen(kTitles, 0);
  for (const Row& row : rows) widen(row.cells, 2 * row.depth);
  return widths;
}

// Returns the first `count` cells in their columns, including the padding of the last one.
std::string aligned(const std::array<std::string, 4>& cells, std::size_t depth, const Widths& widths,
                    std::size_t count) {
  std::string line;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string cell = (i == 0 ? std::string(2 * depth, ' ') : "") + cells[i];
    line += cell + std::string(widths[i] - std::min(widths[i], cell.size()) + 2, ' ');
  }
  return line;
}

std::string trimmed(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

// Returns the rows as a table in which the help is a column.
std::string as_table(const std::vector<Row>& rows, const Widths& widths) {
  std::string text = aligned(kTitles, 0, widths, 4) + "HELP\n";
  for (const Row& row : rows) text += trimmed(aligned(row.cells, row.depth, widths, 4) + row.help) + "\n";
  return text;
}

// Appends the words to `line` and breaks lines at kColumns. Each line but the first is indented.
std::string wrapped(std::string line, const std::string& words, std::size_t indentation) {
  std::string text;
  std::istringstream stream(words);
  bool empty = true;
  for (std::string word; stream >> word; empty = false) {
    if (!empty && columns_of(line) + 1 + columns_of(word) > kColumns) {
      text += line + "\n";
      line = std::string(indentation, ' ');
      empty = true;
    }
    line += (empty ? "" : " ") + word;
  }
  return text + trimmed(line) + "\n";
}

// Returns the rows as a list. The help of a value is below it, and the help of a section is next to its key.
std::string as_list(const std::vector<Row>& rows, const Widths& widths) {
  std::string text = trimmed(aligned(kTitles, 0, widths, 4)) + "\n";
  for (const Row& row : rows) {
    const std::string indentation(2 * row.depth + 6, ' ');
    if (row.cells[1].empty()) {
      const std::string key = aligned(row.cells, row.depth, widths, 1);
      text += wrapped(key, row.help, key.size());
      continue;
    }
    // Only a list of choices can be too long for the line.
    const std::string start = aligned(row.cells, row.depth, widths, 3);
    if (start.size() + row.cells[3].size() <= kColumns) {
      text += trimmed(start + row.cells[3]) + "\n";
    } else {
      text += trimmed(start) + "\n" + wrapped(indentation, "one of " + row.cells[3], indentation.size());
    }
    if (!row.help.empty()) text += wrapped(indentation, row.help, indentation.size());
  }
  return text;
}

std::string format(const std::vector<Row>& rows) {
  const Widths widths = widths_of(rows);
  std::string table = as_table(rows, widths);
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) {
    if (columns_of(line) > kColumns) return as_list(rows, widths);
  }
  return table;
}

bool lies_in(const std::string& path, const std::string& section) {
  return section.empty() || path == section || path.starts_with(section + ".");
}

// Returns the section that was probably meant: one whose last key is the same, or else one that is spelled almost the
// same.
std::string suggested_section(const std::string& section, const std::vector<Row>& rows) {
  std::vector<std::string> paths;
  for (const Row& row : rows) {
    if (last_key(row.path) == last_key(section)) return row.path;
    paths.push_back(row.path);
  }
  return nearest(section, paths);
}

std::vector<Row> rows_of(const std::string& section, const std::vector<Row>& all) {
  std::vector<Row> rows;
  for (const Row& row : all) {
    if (lies_in(row.path, section)) rows.push_back(row);
  }
  if (rows.empty()) {
    const std::string meant = suggested_section(section, all);
    throw ConfigError("a config has no section or key \"" + section + "\"" +
                      (meant.empty() ? "" : " (did you mean \"" + meant + "\"?)"));
  }
  const std::size_t depth = rows.front().depth;
  for (Row& row : rows) row.depth -= depth;
  return rows;
}

std::string text_of(bool value) { return value ? "true" : "false"; }
std::string text_of(std::int64_t value) { return std::to_string(value); }
std::string text_of(double value) { return shortest(value); }
std::string text_of(const std::string& value) { return needs_quotes(value) ? '"' + value + '"' : value; }

class DescribingVisitor final : public Visitor {
 public:
  std::string finish(const std::string& section) const { return format(rows_of(section, rows_)); }

 private:
  bool enter(const Field& section) override {
    add(section.key, ":", {"", "", "", section.help});
    open(section.key);
    return true;
  }
  void leave(const Field&) override { close(); }

  void visit(const Field& field, bool& value) override { scalar(field, value); }
  void visit(const Field& field, std::int64_t& value) override { scalar(field, value); }
  void visit(const Field& field, double& value) override { scalar(field, value); }
  void visit(const Field& field, std::string& value) override { scalar(field, value); }
  void visit(const Field& field, std::optional<double>& value) override {
    add(field.key, "", {type_of(double{}), value ? text_of(*value) : "(none)", describe(field.limits), field.help});
  }
  void visit(const Field& field, std::vector<std::int64_t>& value) override { list(field, value); }
  void visit(const Field& field, std::vector<double>& value) override { list(field, value); }
  void visit(const Field& field, std::vector<std::string>& value) override { list(field, value); }

  void visit(const Field& field, Selection& selection) override {
    const std::string& selected = selection.selected();
    add(field.key, ":", {"one of", selected.empty() ? "(required)" : selected, "", field.help});
    open(field.key);
    // A selection may contain a selection of the same kind, as a chain of schedules does.
    const std::type_index kind(typeid(selection));
    if (std::ranges::count(kinds_, kind) > 0) {
      add("...", "", {"", "", "", "as above"});
    } else {
      kinds_.push_back(kind);
      for (const auto& name : selection.names()) entry(selection, name);
      kinds_.pop_back();
    }
    close();
  }

  void visit(const Field& field, SectionList& sections) override {
    const std::string fallback = sections.size() == 0 ? "[]" : std::to_string(sections.size()) + " of them";
    add(field.key, ":", {"list of", fallback, "", field.help});
    open(field.key);
    sections.visit_defaults(*this);
    close();
  }

  void visit(const Field& field, SectionMap& sections) override {
    add(field.key, ":", {"sections", "{}", "", field.help});
    open(field.key);
    add("KEY", ":", {});
    open("KEY");
    sections.visit_defaults(*this);
    close();
    close();
  }

  void entry(Selection& selection, const std::string& name) {
    rows_.push_back({path_of(path(), name), path_.size(), {"name: " + name, "", "", ""}, selection.help(name)});
    open(name);
    // The struct that holds the selection may have changed the defaults of the selected name.
    if (name == selection.selected()) {
      selection.visit_selected(*this);
    } else {
      selection.visit_defaults(name, *this);
    }
    close();
  }

  template <class T>
  void scalar(const Field& field, const T& value) {
    add(field.key, "", {type_of(value), text_of(value), describe(field.limits), field.help});
  }

  template <class T>
  void list(const Field& field, const std::vector<T>& values) {
    std::vector<std::string> texts;
    for (const auto& value : values) texts.push_back(text_of(value));
    add(field.key, "",
        {std::string("list (") + type_of(T{}) + ")", "[" + join(texts, ", ") + "]", describe(field.limits),
         field.help});
  }

  struct About {
    std::string type{}, fallback{}, limits{}, help{};
  };

  void add(const std::string& key, const char* mark, const About& about) {
    rows_.push_back(
        {path_of(path(), key), path_.size(), {key + mark, about.type, about.fallback, about.limits}, about.help});
  }

  void open(const std::string& key) { path_.push_back(path_of(path(), key)); }
  void close() { path_.pop_back(); }
  std::string path() const { return path_.empty() ? "" : path_.back(); }

  std::vector<Row> rows_;
  std::vector<std::string> path_;       // paths of the sections around the current field
  std::vector<std::type_index> kinds_;  // types of the selections around it
};

}  // namespace

std::string describe_from(const Visit& visit, const std::string& section) {
  DescribingVisitor describing;
  visit(describing);
  return describing.finish(section);
}

}  // namespace phalanx::config
