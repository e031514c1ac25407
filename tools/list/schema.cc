// SPDX-License-Identifier: Apache-2.0

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/list/kinds.h"

namespace phalanx {
namespace {

using Json = nlohmann::ordered_json;
using config::Field;

const char* type_of(bool) { return "boolean"; }
const char* type_of(std::int64_t) { return "integer"; }
const char* type_of(double) { return "number"; }
const char* type_of(const std::string&) { return "string"; }

class SchemaVisitor final : public config::Visitor {
 public:
  Json finish() { return std::move(levels_.front()); }

 private:
  bool enter(const Field& section) override {
    open(section, "section");
    return true;
  }
  void leave(const Field&) override { close(); }

  void visit(const Field& field, bool& value) override { add_value(field, value); }
  void visit(const Field& field, std::int64_t& value) override { add_value(field, value); }
  void visit(const Field& field, double& value) override { add_value(field, value); }
  void visit(const Field& field, std::string& value) override { add_value(field, value); }
  void visit(const Field& field, std::optional<double>& value) override {
    Json& json = add_value(field, double{});
    json["default"] = value ? Json(*value) : Json(nullptr);
  }
  void visit(const Field& field, std::vector<std::int64_t>& value) override { add_list(field, value); }
  void visit(const Field& field, std::vector<double>& value) override { add_list(field, value); }
  void visit(const Field& field, std::vector<std::string>& value) override { add_list(field, value); }

  void visit(const Field& field, config::Selection& selection) override {
    Json& json = add(field, "selection");
    const std::string& selected = selection.selected();
    json["default"] = selected.empty() ? Json(nullptr) : Json(selected);
    if (const auto kind = kind_of(selection); !kind.empty()) {
      json["kind"] = kind;
    } else {
      json["names"] = selection.names();
    }
  }
  void visit(const Field& field, config::SectionList& sections) override {
    open(field, "list of sections");
    sections.visit_defaults(*this);
    close();
  }
  void visit(const Field& field, config::SectionMap& sections) override {
    open(field, "sections by key");
    sections.visit_defaults(*this);
    close();
  }

  Json& add(const Field& field, const char* type) {
    levels_.back().push_back({{"key", field.key}, {"type", type}, {"help", field.help}});
    return levels_.back().back();
  }

  template <class T>
  Json& add_value(const Field& field, const T& value) {
    Json& json = add(field, type_of(value));
    json["default"] = value;
    add_limits(field.limits, json);
    return json;
  }

  template <class T>
  void add_list(const Field& field, const std::vector<T>& values) {
    Json& json = add(field, "list");
    json["items"] = type_of(T{});
    json["default"] = values;
    add_limits(field.limits, json);
  }

  static void add_limits(const config::Limits& limits, Json& json) {
    if (std::isfinite(limits.min)) json["minimum"] = limits.min;
    if (std::isfinite(limits.max)) json["maximum"] = limits.max;
    if (limits.exclusive) json["exclusive"] = true;
    if (!limits.choices.empty()) json["choices"] = limits.choices;
  }

  // Opens a field; the fields that are visited before close() belong to it.
  void open(const Field& field, const char* type) {
    add(field, type);
    levels_.push_back(Json::array());
  }

  void close() {
    Json fields = std::move(levels_.back());
    levels_.pop_back();
    levels_.back().back()["fields"] = std::move(fields);
  }

  std::vector<Json> levels_{Json::array()};
};

}  // namespace

Json fields_of(const config::Visit& visit) {
  SchemaVisitor visitor;
  visit(visitor);
  return visitor.finish();
}

}  // namespace phalanx
