// SPDX-License-Identifier: Apache-2.0
// Serialized arguments: union Argument of torch/_export/serde/schema.py of PyTorch 2.13.
#include "models/exported/arguments.h"

#include <ATen/ScalarOps.h>
#include <ATen/core/List.h>
#include <ATen/core/jit_type.h>

#include <stdexcept>

#include "models/exported/archive.h"

namespace phalanx::exported {
namespace {

using json = nlohmann::ordered_json;

std::size_t slot_of(const json& named, const Slots& slots) {
  const auto found = slots.find(named.get<std::string>());
  if (found == slots.end())
    throw std::runtime_error("reads " + named.dump() + ", which is not an output of a node before it");
  return found->second;
}

// Returns the argument's type in the schema, without "optional".
c10::TypePtr plain(const c10::Argument* formal) {
  if (formal == nullptr) return nullptr;
  const auto type = formal->type();
  const auto optional = type->cast<c10::OptionalType>();
  return optional ? optional->getElementType() : type;
}

c10::TypePtr element_of(const c10::TypePtr& type) {
  const auto list = type ? type->cast<c10::ListType>() : nullptr;
  return list ? list->getElementType() : nullptr;
}

bool is(const c10::TypePtr& type, c10::TypeKind kind) { return type && type->kind() == kind; }

std::int64_t memory_format(int serialized) {
  static const std::map<int, c10::MemoryFormat> kFormats{{1, c10::MemoryFormat::Contiguous},
                                                         {2, c10::MemoryFormat::ChannelsLast},
                                                         {3, c10::MemoryFormat::ChannelsLast3d},
                                                         {4, c10::MemoryFormat::Preserve}};
  const auto found = kFormats.find(serialized);
  if (found == kFormats.end()) throw std::runtime_error("has a memory format that is not supported");
  return static_cast<std::int64_t>(found->second);
}

// Parses a number; "Infinity" and similar values are strings.
double number_of(const json& value) {
  return value.is_string() ? std::stod(value.get<std::string>()) : value.get<double>();
}

// Converts a number to a tensor as Python does where an operator expects a tensor. Such a tensor does not influence the
// dtype of the result.
c10::IValue as_tensor(const c10::IValue& value) {
  const bool number = value.isInt() || value.isDouble() || value.isBool();
  return number ? at::native::wrapped_scalar_tensor(value.toScalar()) : value;
}

c10::IValue list_of(const json& list, const c10::TypePtr& type) {
  const auto element = element_of(type);
  if (is(element, c10::TypeKind::FloatType)) {
    c10::List<double> values;
    for (const auto& value : list) values.push_back(number_of(value));
    return values;
  }
  if (is(element, c10::TypeKind::BoolType)) {
    c10::List<bool> values;
    for (const auto& value : list) values.push_back(value.get<bool>());
    return values;
  }
  if (is(element, c10::TypeKind::TensorType) && list.empty()) return c10::List<at::Tensor>();
  if (element && element->kind() == c10::TypeKind::OptionalType && list.empty()) {
    return c10::List<std::optional<at::Tensor>>();
  }
  c10::List<std::int64_t> values;
  for (const auto& value : list) values.push_back(value.get<std::int64_t>());
  return values;
}

c10::IValue scalar_of(const std::string& kind, const json& value, const c10::Argument* formal) {
  const auto type = plain(formal);
  if (kind == "as_none") return {};
  if (kind == "as_bool") return value.get<bool>();
  if (kind == "as_string") return value.get<std::string>();
  if (kind == "as_float") return number_of(value);
  if (kind == "as_int") {
    const auto number = value.get<std::int64_t>();
    if (is(type, c10::TypeKind::FloatType)) return static_cast<double>(number);
    if (is(type, c10::TypeKind::ListType)) {
      c10::List<std::int64_t> values;
      for (int i = 0; i < formal->N().value_or(1); ++i) values.push_back(number);
      return values;
    }
    return number;
  }
  if (kind == "as_ints" || kind == "as_floats" || kind == "as_bools") return list_of(value, type);
  if (kind == "as_scalar_type") {
    const auto dtype = dtype_of(value.get<int>());
    if (dtype == at::ScalarType::Undefined) throw std::runtime_error("has a dtype that is not supported");
    return static_cast<std::int64_t>(dtype);
  }
  if (kind == "as_memory_format") return memory_format(value.get<int>());
  if (kind == "as_layout") {
    if (value.get<int>() != 7) throw std::runtime_error("has a layout other than strided");
    return static_cast<std::int64_t>(c10::Layout::Strided);
  }
  if (kind == "as_device") {
    const auto device = value.at("type").get<std::string>();
    if (device != "cpu") throw std::runtime_error("is on the device " + device + ": export the model on the CPU");
    return c10::Device(c10::kCPU);
  }
  throw std::runtime_error("has an argument of kind " + kind + ", which is not supported");
}

}  // namespace

json::const_iterator union_of(const json& serialized) {
  if (!serialized.is_object() || serialized.size() != 1) {
    throw std::runtime_error("has " + serialized.dump().substr(0, 80) + " where a value of one kind is expected");
  }
  return serialized.begin();
}

void Argument::read(std::size_t slot) { reads_.push_back(slot); }

void Argument::read_numbers(const json& list, const Slots& slots) {
  kind_ = Kind::kNumbers;
  for (const auto& entry : list) {
    if (entry.contains("as_int")) {
      elements_.push_back({.number = entry.at("as_int").get<std::int64_t>()});
    } else {
      elements_.push_back({.is_slot = true, .slot = slot_of(entry.at("as_name"), slots)});
      read(elements_.back().slot);
    }
  }
}

void Argument::read_tensors(const json& list, bool optional, const Slots& slots) {
  kind_ = optional ? Kind::kOptionalTensors : Kind::kTensors;
  for (const auto& entry : list) {
    if (entry.contains("as_none")) {
      elements_.push_back({});
      continue;
    }
    const auto& named = entry.contains("as_tensor") ? entry.at("as_tensor") : entry;
    elements_.push_back({.is_slot = true, .slot = slot_of(named.at("name"), slots)});
    read(elements_.back().slot);
  }
}

Argument::Argument(const json& serialized, const c10::Argument* formal, const Slots& slots)
    : tensor_(is(plain(formal), c10::TypeKind::TensorType)) {
  const auto one = union_of(serialized);
  const std::string& kind = one.key();
  const json& value = one.value();
  if (kind == "as_tensor" || ((kind == "as_sym_int" || kind == "as_sym_bool") && value.contains("as_name"))) {
    kind_ = Kind::kSlot;
    read(slot_of(value.at(kind == "as_tensor" ? "name" : "as_name"), slots));
  } else if (kind == "as_sym_int") {
    constant_ = value.at("as_int").get<std::int64_t>();
  } else if (kind == "as_sym_bool") {
    constant_ = value.at("as_bool").get<bool>();
  } else if (kind == "as_sym_ints") {
    read_numbers(value, slots);
  } else if (kind == "as_tensors" || kind == "as_optional_tensors") {
    const auto element = element_of(plain(formal));
    read_tensors(value, is(element, c10::TypeKind::OptionalType), slots);
  } else if (kind == "as_optional_tensor") {
    if (value.contains("as_tensor")) {
      kind_ = Kind::kSlot;
      read(slot_of(value.at("as_tensor").at("name"), slots));
    }
  } else {
    constant_ = scalar_of(kind, value, formal);
    if (tensor_) constant_ = as_tensor(constant_);
  }
}

c10::IValue Argument::value(const std::vector<c10::IValue>& values) const {
  switch (kind_) {
    case Kind::kConstant:
      return constant_;
    case Kind::kSlot:
      return tensor_ ? as_tensor(values[reads_[0]]) : values[reads_[0]];
    case Kind::kNumbers: {
      c10::List<std::int64_t> list;
      for (const auto& element : elements_) {
        list.push_back(element.is_slot ? values[element.slot].toInt() : element.number);
      }
      return list;
    }
    case Kind::kTensors: {
      c10::List<at::Tensor> list;
      for (const auto& element : elements_) list.push_back(values[element.slot].toTensor());
      return list;
    }
    case Kind::kOptionalTensors: {
      c10::List<std::optional<at::Tensor>> list;
      for (const auto& element : elements_) {
        list.push_back(element.is_slot ? std::optional(values[element.slot].toTensor()) : std::nullopt);
      }
      return list;
    }
  }
  return {};
}

}  // namespace phalanx::exported
