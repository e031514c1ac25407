// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace phalanx::config {

/// The values that a field accepts beyond its type. The limits of a list apply to each of its items.
struct Limits {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool exclusive = false;              // if true, min and max themselves are refused
  std::vector<std::string> choices{};  // for strings; empty accepts any
};

inline Limits at_least(double min) { return {.min = min}; }
inline Limits above(double min) { return {.min = min, .exclusive = true}; }
inline Limits between(double min, double max) { return {.min = min, .max = max}; }
inline Limits one_of(std::vector<std::string> choices) { return {.choices = std::move(choices)}; }

struct Field {
  const char* key;
  const char* help;
  Limits limits;
};

class Visitor;

/// A section whose `name` key picks one of several schemas: {name: sgd, lr: 0.1}, or {sgd: {lr: 0.1}}, or just `sgd`
/// with its defaults. Implemented by Registry::Choice.
class Selection {
 public:
  virtual ~Selection() = default;
  virtual std::vector<std::string> names() const = 0;                     // sorted
  virtual std::string help(const std::string& name) const = 0;            // one line
  virtual const std::string& selected() const = 0;                        // empty if nothing is selected yet
  virtual std::string name_implied_by(const std::string& key) const = 0;  // the name that this key implies; empty: none
  virtual void select(const std::string& name) = 0;   // also resets the fields to the defaults of `name`
  virtual void visit_selected(Visitor& visitor) = 0;  // the fields besides `name`; none if nothing is selected

  /// Visits the fields that `name` would have if it were selected, without selecting it.
  virtual void visit_defaults(const std::string& name, Visitor& visitor) const = 0;
};

/// A list of sections that share one schema, independent of their struct: [{lr: 0.1, steps: 10}, {lr: 0.01}].
class SectionList {
 public:
  virtual ~SectionList() = default;
  virtual std::size_t size() const = 0;
  virtual void reset(std::size_t size) = 0;  // makes that many sections, with the defaults of their struct
  virtual void visit_item(std::size_t index, Visitor& visitor) = 0;
  virtual void visit_defaults(Visitor& visitor) const = 0;  // visits a section that would be added; changes nothing
};

/// Sections that share one schema, each under a key that the author of the config chooses: {accuracy: {min: 0.9}, loss:
/// {max: 1}}.
class SectionMap {
 public:
  virtual ~SectionMap() = default;
  virtual std::vector<std::string> keys() const = 0;             // sorted
  virtual void reset(const std::vector<std::string>& keys) = 0;  // makes these, with the defaults of their struct
  virtual void visit_item(const std::string& key, Visitor& visitor) = 0;
  virtual void visit_defaults(Visitor& visitor) const = 0;  // visits a section that would be added; changes nothing
};

template <class T>
concept Section = requires(T& value, Visitor& visitor) { value.visit(visitor); };

/// The SectionList over a vector of structs, which it must not outlive.
template <Section T>
class SectionsOf final : public SectionList {
 public:
  explicit SectionsOf(std::vector<T>& items) : items_(items) {}
  std::size_t size() const override { return items_.size(); }
  void reset(std::size_t size) override { items_.assign(size, T{}); }
  void visit_item(std::size_t index, Visitor& visitor) override { items_[index].visit(visitor); }
  void visit_defaults(Visitor& visitor) const override { T{}.visit(visitor); }

 private:
  std::vector<T>& items_;
};

/// The SectionMap over a map of structs, which it must not outlive.
template <Section T>
class SectionsByKey final : public SectionMap {
 public:
  explicit SectionsByKey(std::map<std::string, T>& items) : items_(items) {}
  std::vector<std::string> keys() const override {
    std::vector<std::string> keys;
    for (const auto& [key, item] : items_) keys.push_back(key);
    return keys;
  }
  void reset(const std::vector<std::string>& keys) override {
    items_.clear();
    for (const auto& key : keys) items_[key] = T{};
  }
  void visit_item(const std::string& key, Visitor& visitor) override { items_.at(key).visit(visitor); }
  void visit_defaults(Visitor& visitor) const override { T{}.visit(visitor); }

 private:
  std::map<std::string, T>& items_;
};

/// Visits every field of a config struct, in order to load, check, dump or document it.
///
/// A config is a plain struct whose visit() names each field once, and that is its whole schema:
///
///     struct MlpConfig {
///       std::int64_t hidden = 128;
///       template <class V> void visit(V& v) { v("hidden", hidden, "width of the hidden layer", config::at_least(1)); }
///     };
///
/// A field is a bool, std::int64_t, double, std::string, an optional double, a vector of integers, numbers or strings,
/// a nested struct with its own visit(), a vector of such structs or a map of them by key, or a Selection. Its value
/// before loading is its default. Numbers are finite.
class Visitor {
 public:
  virtual ~Visitor() = default;

  template <class T>
  void operator()(const char* key, T& value, const char* help, Limits limits = {}) {
    const Field field{key, help, std::move(limits)};
    if constexpr (Section<T>) {
      if (!enter(field)) return;
      value.visit(*this);
      leave(field);
    } else if constexpr (requires { SectionsOf(value); }) {
      SectionsOf sections(value);
      visit(field, static_cast<SectionList&>(sections));
    } else if constexpr (requires { SectionsByKey(value); }) {
      SectionsByKey sections(value);
      visit(field, static_cast<SectionMap&>(sections));
    } else {
      static_assert(requires { visit(field, value); }, "not the type of a config field: see above");
      visit(field, value);
    }
  }

  /// Names a key that configs once had. Loading a config that still has it fails, and the error shows `replacement`,
  /// the way it is written now.
  virtual void retired(const char* /*key*/, const char* /*replacement*/) {}

  /// Names the former key of the field `key` of this section, which visit() must visit afterwards. Loading a config
  /// that has the former key reads its value and logs a warning with the new key.
  virtual void renamed(const char* /*former*/, const char* /*key*/) {}

 protected:
  virtual bool enter(const Field& section) = 0;  // false: skip the section
  virtual void leave(const Field& section) = 0;
  virtual void visit(const Field& field, bool& value) = 0;
  virtual void visit(const Field& field, std::int64_t& value) = 0;
  virtual void visit(const Field& field, double& value) = 0;
  virtual void visit(const Field& field, std::string& value) = 0;
  virtual void visit(const Field& field, std::optional<double>& value) = 0;
  virtual void visit(const Field& field, std::vector<std::int64_t>& value) = 0;
  virtual void visit(const Field& field, std::vector<double>& value) = 0;
  virtual void visit(const Field& field, std::vector<std::string>& value) = 0;
  virtual void visit(const Field& field, Selection& value) = 0;
  virtual void visit(const Field& field, SectionList& value) = 0;
  virtual void visit(const Field& field, SectionMap& value) = 0;
};

/// Applies a visitor to all fields of some config struct without exposing the struct's type.
using Visit = std::function<void(Visitor&)>;

}  // namespace phalanx::config
