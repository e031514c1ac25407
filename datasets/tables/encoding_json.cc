// SPDX-License-Identifier: Apache-2.0
// The JSON document of a TableEncoding, version 1:
//
//   {"version": 1, "classes": 2, "unknown": "error", "features": ["age", ...],
//    "inputs": [{"name": "age", "type": "number", "missing": "fill", "fill": 28.5, "indicator": true, "mean": ..,
//                "scale": ..},
//               {"name": "sex", "type": "text", "missing": "error", "categories": ["female", "male"]}],
//    "targets": [{"name": "survived", "type": "text", "missing": "error", "categories": ["no", "yes"]}]}
#include <cmath>
#include <nlohmann/json.hpp>

#include "datasets/tables/encoding.h"
#include "framework/base/json.h"

namespace phalanx {
namespace {

using Json = nlohmann::ordered_json;
using Missing = ColumnEncoding::Missing;

constexpr int kVersion = 1;

Json to_value(const ColumnEncoding& column) {
  Json value{{"name", column.name}, {"type", to_string(column.type)}};
  value["missing"] = column.missing == Missing::kError ? "error" : column.missing == Missing::kDrop ? "drop" : "fill";
  if (column.missing == Missing::kFill) value["fill"] = column.fill;
  if (column.indicator) value["indicator"] = true;
  if (column.category) {
    value["categories"] = column.categories;
  } else if (column.mean != 0 || column.scale != 1) {
    value["mean"] = column.mean;
    value["scale"] = column.scale;
  }
  return value;
}

ValueType type_in(const JsonValue& value) {
  const auto name = value.as<std::string>();
  for (const auto type : {ValueType::kNumber, ValueType::kBoolean, ValueType::kText, ValueType::kDate}) {
    if (to_string(type) == name) return type;
  }
  value.refuse("is not a type of a column: \"" + name + "\"");
}

Missing missing_in(const JsonValue& value) {
  const auto name = value.as<std::string>();
  if (name == "error") return Missing::kError;
  if (name == "drop") return Missing::kDrop;
  if (name == "fill") return Missing::kFill;
  value.refuse("is neither error, drop nor fill: \"" + name + "\"");
}

ColumnEncoding from_value(const JsonValue& value) {
  ColumnEncoding column{.name = value.get<std::string>("name"), .type = type_in(value.at("type"))};
  column.missing = missing_in(value.at("missing"));
  if (column.missing == Missing::kFill) column.fill = value.get<double>("fill");
  column.indicator = value.get_or("indicator", false);
  column.category = value.has("categories");
  if (column.category) column.categories = value.get<std::vector<std::string>>("categories");
  column.mean = value.get_or("mean", 0.0);
  column.scale = value.get_or("scale", 1.0);
  if (column.scale == 0) value.at("scale").refuse("is 0");
  return column;
}

std::vector<ColumnEncoding> columns_in(const JsonValue& list) {
  std::vector<ColumnEncoding> columns;
  for (const auto& value : list.elements()) columns.push_back(from_value(value));
  if (columns.empty()) list.refuse("has no column");
  return columns;
}

}  // namespace

std::string TableEncoding::to_json() const {
  Json inputs = Json::array(), targets = Json::array();
  for (const auto& column : inputs_) inputs.push_back(to_value(column));
  for (const auto& column : targets_) targets.push_back(to_value(column));
  const Json all{
      {"version", kVersion},    {"classes", classes_},         {"unknown", unknown_is_zeros_ ? "zeros" : "error"},
      {"features", features()}, {"inputs", std::move(inputs)}, {"targets", std::move(targets)}};
  return all.dump(1) + "\n";
}

TableEncoding TableEncoding::from_json(const std::string& text, const std::string& path) {
  const auto all = parse_json(text, path);
  if (all.get<int>("version") != kVersion) all.at("version").refuse("is not 1, the only version that is supported");
  TableEncoding encoding;
  encoding.classes_ = all.get<std::int64_t>("classes");
  encoding.unknown_is_zeros_ = all.get<std::string>("unknown") == "zeros";
  encoding.inputs_ = columns_in(all.at("inputs"));
  encoding.targets_ = columns_in(all.at("targets"));
  const auto& target = encoding.targets_.front();
  if (encoding.classes_ < 0 || (encoding.classes_ > 0 && encoding.targets_.size() > 1) ||
      (target.category && encoding.classes_ != std::ssize(target.categories))) {
    all.at("classes").refuse("does not suit the targets");
  }
  return encoding;
}

}  // namespace phalanx
