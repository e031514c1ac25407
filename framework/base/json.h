// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace phalanx {

/// A value of a JSON document from an untrusted source. Everything that is read from it is checked. Each error is a
/// DataError "SOURCE: PATH: why", such as "tokenizer.json: model.merges[3]: is a number, not a string". Copies share
/// the document.
class JsonValue {
 public:
  bool is_null() const;
  bool is_string() const;
  bool is_number() const;
  bool is_array() const;
  bool is_object() const;

  /// Returns a member of an object. Throws if there is no such member, or if this is not an object.
  JsonValue at(std::string_view key) const;

  /// Returns true if this is an object with such a member, null or not. Takes time linear in the number of members.
  bool has(std::string_view key) const;

  /// Return all members of an object, in the order of the document, or all elements of an array.
  std::vector<std::pair<std::string, JsonValue>> members() const;
  std::vector<JsonValue> elements() const;

  /// Converts to bool, an integer type (the number must be in its range), double, std::string, or a std::vector or
  /// std::map<std::string, ...> of such types. The type must match, except that integers convert to double. Throws if
  /// it does not match.
  template <class T>
  T as() const;

  /// Returns a member, converted to T.
  template <class T>
  T get(std::string_view key) const {
    return at(key).as<T>();
  }

  /// Returns a member, converted to T, or `fallback` if the member is absent or null.
  template <class T>
  T get_or(std::string_view key, T fallback) const {
    return has(key) && !at(key).is_null() ? get<T>(key) : std::move(fallback);
  }

  /// Throws DataError: "SOURCE: PATH: why".
  [[noreturn]] void refuse(const std::string& why) const;

  /// Returns the value itself, for writing or comparing.
  const nlohmann::ordered_json& raw() const { return *value_; }

 private:
  struct Document;

  JsonValue(std::shared_ptr<const Document> document, const nlohmann::ordered_json* value)
      : document_(std::move(document)), value_(value) {}

  bool to_bool() const;
  double to_double() const;
  std::string to_string() const;
  std::int64_t to_integer(std::int64_t least, std::int64_t most) const;
  std::uint64_t to_unsigned(std::uint64_t most) const;

  friend JsonValue parse_json(std::string_view text, const std::string& source);

  std::shared_ptr<const Document> document_;
  const nlohmann::ordered_json* value_;
};

/// Parses one JSON document. `source` names it in errors: a path, or "the status of server 2". Throws DataError for
/// text that is not JSON, for more than 256 levels of arrays and objects, and for an object with two members of one
/// name. The use of stack does not grow with the text.
JsonValue parse_json(std::string_view text, const std::string& source);

namespace json_detail {

template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};
template <class T>
struct IsMap : std::false_type {};
template <class T>
struct IsMap<std::map<std::string, T>> : std::true_type {};

}  // namespace json_detail

template <class T>
T JsonValue::as() const {
  if constexpr (std::is_same_v<T, JsonValue>) {
    return *this;
  } else if constexpr (std::is_same_v<T, bool>) {
    return to_bool();
  } else if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
    return static_cast<T>(to_integer(std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(to_unsigned(std::numeric_limits<T>::max()));
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(to_double());
  } else if constexpr (json_detail::IsVector<T>::value) {
    T all;
    for (const auto& element : elements()) all.push_back(element.as<typename T::value_type>());
    return all;
  } else if constexpr (json_detail::IsMap<T>::value) {
    T all;
    for (auto& [key, value] : members()) all.emplace(std::move(key), value.template as<typename T::mapped_type>());
    return all;
  } else {
    static_assert(std::is_same_v<T, std::string>);
    return to_string();
  }
}

}  // namespace phalanx
