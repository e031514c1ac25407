// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace phalanx::exported {

/// Maps the names of a graph's values to their slots.
using Slots = std::map<std::string, std::size_t>;

/// Returns the only member of a serialized union, such as {"as_int": 3}. Throws std::runtime_error unless there is
/// exactly one.
nlohmann::ordered_json::const_iterator union_of(const nlohmann::ordered_json& serialized);

/// An argument of a node: a constant, the value of a slot, or a list with some elements from slots. Its value is
/// created at each run.
class Argument {
 public:
  explicit Argument(c10::IValue constant) : constant_(std::move(constant)) {}

  /// Parses a serialized argument. `formal` is the argument in the operator's schema, or null if the operator is not
  /// one of the dispatcher's. Throws std::runtime_error for unsupported arguments.
  Argument(const nlohmann::ordered_json& serialized, const c10::Argument* formal, const Slots& slots);

  c10::IValue value(const std::vector<c10::IValue>& values) const;

  /// Returns the slots that it reads.
  const std::vector<std::size_t>& reads() const { return reads_; }

  /// Returns the value of a constant argument.
  const c10::IValue& constant() const { return constant_; }
  bool is_constant() const { return kind_ == Kind::kConstant; }

 private:
  enum class Kind { kConstant, kSlot, kNumbers, kTensors, kOptionalTensors };
  struct Element {
    bool is_slot = false;
    std::size_t slot = 0;
    std::int64_t number = 0;
  };

  void read(std::size_t slot);
  void read_numbers(const nlohmann::ordered_json& list, const Slots& slots);
  void read_tensors(const nlohmann::ordered_json& list, bool optional, const Slots& slots);

  Kind kind_ = Kind::kConstant;
  bool tensor_ = false;  // the operator expects a tensor
  c10::IValue constant_;
  std::vector<Element> elements_;
  std::vector<std::size_t> reads_;
};

}  // namespace phalanx::exported
