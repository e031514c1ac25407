// SPDX-License-Identifier: Apache-2.0
#include "framework/base/json.h"

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_set>

#include "framework/base/error.h"

namespace phalanx {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMaxDepth = 256;  // nlohmann's functions for copying and writing recurse

// "[json.exception.parse_error.101] parse error at line 1, ..." without the brackets.
std::string without_tag(std::string message) {
  const auto end = message.find("] ");
  return message.starts_with('[') && end != std::string::npos ? message.substr(end + 2) : message;
}

// Builds the document as the parser reads it.
class Builder final : public Json::json_sax_t {
 public:
  Builder(Json& root, const std::string& source) : root_(root), source_(source) {}

  bool null() override { return put(nullptr), true; }
  bool boolean(bool value) override { return put(value), true; }
  bool number_integer(number_integer_t value) override { return put(value), true; }
  bool number_unsigned(number_unsigned_t value) override { return put(value), true; }
  bool number_float(number_float_t value, const string_t&) override { return put(value), true; }
  bool string(string_t& value) override { return put(std::move(value)), true; }
  bool binary(binary_t&) override { return false; }  // does not occur in JSON text

  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return open_.pop_back(), true; }
  bool end_array() override { return open_.pop_back(), true; }

  bool key(string_t& name) override {
    auto& object = open_.back();
    if (!object.names.insert(name).second) throw DataError(source_ + ": has two members called \"" + name + "\"");
    object.key = std::move(name);
    return true;
  }

  bool parse_error(std::size_t, const std::string&, const Json::exception& error) override {
    throw DataError(source_ + ": is not JSON: " + without_tag(error.what()));
  }

 private:
  struct Open {
    Json* value;
    std::string key{};  // the name of the next member
    std::unordered_set<std::string> names{};
  };

  // Appends to the container directly: ordered_json's own functions compare each new member with all others.
  Json* put(Json value) {
    if (open_.empty()) return &(root_ = std::move(value));
    auto& [parent, key, names] = open_.back();
    if (parent->is_array()) return &parent->get_ref<Json::array_t&>().emplace_back(std::move(value));
    auto& members = static_cast<Json::object_t::Container&>(parent->get_ref<Json::object_t&>());
    return &members.emplace_back(std::move(key), std::move(value)).second;
  }

  bool open(Json empty) {
    if (open_.size() == kMaxDepth) {
      throw DataError(source_ + ": has arrays or objects nested deeper than " + std::to_string(kMaxDepth) + " levels");
    }
    open_.push_back({.value = put(std::move(empty))});
    return true;
  }

  Json& root_;
  const std::string& source_;
  std::vector<Open> open_;
};

const char* kind_of(const Json& value) {
  switch (value.type()) {
    case Json::value_t::null:
      return "null";
    case Json::value_t::boolean:
      return "a boolean";
    case Json::value_t::string:
      return "a string";
    case Json::value_t::array:
      return "an array";
    case Json::value_t::object:
      return "an object";
    default:
      return "a number";
  }
}

// Returns the path of a value below another: "nodes[3].name". It is searched for only when an error is reported, so it
// costs nothing otherwise.
std::optional<std::string> path_to(const Json& from, const Json& wanted) {
  if (&from == &wanted) return "";
  std::size_t index = 0;
  for (auto child = from.begin(); from.is_structured() && child != from.end(); ++child, ++index) {
    const auto rest = path_to(*child, wanted);
    if (!rest) continue;
    const std::string step = from.is_array() ? "[" + std::to_string(index) + "]" : child.key();
    return step + (rest->empty() || rest->starts_with('[') ? "" : ".") + *rest;
  }
  return std::nullopt;
}

std::string not_of_kind(const Json& value, const std::string& expected) {
  return std::string("is ") + kind_of(value) + ", not " + expected;
}

}  // namespace

struct JsonValue::Document {
  std::string source;
  Json root{};
};

JsonValue parse_json(std::string_view text, const std::string& source) {
  auto document = std::make_shared<JsonValue::Document>(JsonValue::Document{.source = source});
  Builder builder(document->root, source);
  Json::sax_parse(text, &builder);
  const Json* const root = &document->root;
  return {std::move(document), root};
}

bool JsonValue::is_null() const { return value_->is_null(); }
bool JsonValue::is_string() const { return value_->is_string(); }
bool JsonValue::is_number() const { return value_->is_number(); }
bool JsonValue::is_array() const { return value_->is_array(); }
bool JsonValue::is_object() const { return value_->is_object(); }

JsonValue JsonValue::at(std::string_view key) const {
  if (!is_object()) refuse(not_of_kind(*value_, "an object"));
  const auto found = value_->find(key);
  if (found == value_->end()) refuse("has no \"" + std::string(key) + "\"");
  return {document_, &*found};
}

bool JsonValue::has(std::string_view key) const { return is_object() && value_->find(key) != value_->end(); }

std::vector<std::pair<std::string, JsonValue>> JsonValue::members() const {
  if (!is_object()) refuse(not_of_kind(*value_, "an object"));
  std::vector<std::pair<std::string, JsonValue>> all;
  all.reserve(value_->size());
  for (auto member = value_->begin(); member != value_->end(); ++member) {
    all.emplace_back(member.key(), JsonValue(document_, &*member));
  }
  return all;
}

std::vector<JsonValue> JsonValue::elements() const {
  if (!is_array()) refuse(not_of_kind(*value_, "an array"));
  std::vector<JsonValue> all;
  all.reserve(value_->size());
  for (const auto& element : *value_) all.push_back(JsonValue(document_, &element));
  return all;
}

void JsonValue::refuse(const std::string& why) const {
  const std::string path = path_to(document_->root, *value_).value_or("");
  throw DataError(document_->source + ": " + (path.empty() ? "" : path + ": ") + why);
}

bool JsonValue::to_bool() const {
  if (!value_->is_boolean()) refuse(not_of_kind(*value_, "a boolean"));
  return value_->get<bool>();
}

double JsonValue::to_double() const {
  if (!is_number()) refuse(not_of_kind(*value_, "a number"));
  return value_->get<double>();
}

std::string JsonValue::to_string() const {
  if (!is_string()) refuse(not_of_kind(*value_, "a string"));
  return value_->get<std::string>();
}

std::int64_t JsonValue::to_integer(std::int64_t least, std::int64_t most) const {
  if (!value_->is_number_integer()) {
    refuse(is_number() ? "is " + value_->dump() + ", not a whole number" : not_of_kind(*value_, "a whole number"));
  }
  const bool large = value_->is_number_unsigned() && !std::in_range<std::int64_t>(value_->get<std::uint64_t>());
  const std::int64_t value = large ? 0 : value_->get<std::int64_t>();
  if (large || value < least || value > most) {
    refuse(value_->dump() + " is not between " + std::to_string(least) + " and " + std::to_string(most));
  }
  return value;
}

std::uint64_t JsonValue::to_unsigned(std::uint64_t most) const {
  if (!value_->is_number_unsigned()) {
    refuse(is_number() ? "is " + value_->dump() + ", not a whole number from 0 to " + std::to_string(most)
                       : not_of_kind(*value_, "a whole number"));
  }
  const auto value = value_->get<std::uint64_t>();
  if (value > most) refuse(value_->dump() + " is not between 0 and " + std::to_string(most));
  return value;
}

}  // namespace phalanx
