// SPDX-License-Identifier: Apache-2.0
#include "framework/observe/hang/flight_recorder_value.h"

#include <cmath>

#include "framework/base/error.h"
#include "framework/base/printable.h"

namespace phalanx {
namespace {

constexpr std::uint64_t kFreeReads = 1 << 20;
constexpr std::uint64_t kMaxReads = 64;  // times the bytes of the pickle

}  // namespace

DumpValue::Document DumpValue::parse(const std::string& source, const std::string& pickle) {
  return {.source = source,
          .reads_left = kFreeReads + kMaxReads * pickle.size(),
          .unpickled = unpickle_plain(source, pickle)};
}

void DumpValue::refuse(const std::string& why) const { throw DataError(document_->source + ": " + path_ + why); }

std::optional<DumpValue> DumpValue::find(std::string_view key) const {
  const auto& items = of_kind(PickleNode::kDict, "a dictionary").items;
  read(items.size());
  for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
    if (items[i]->kind != PickleNode::kText || items[i]->text != key) continue;
    if (items[i + 1]->kind == PickleNode::kNone) return std::nullopt;
    return DumpValue(*document_, path_ + ": " + std::string(key), items[i + 1]);
  }
  return std::nullopt;
}

DumpValue DumpValue::at(std::string_view key) const {
  if (auto value = find(key)) return *std::move(value);
  refuse(" has no " + std::string(key) + "; is this a dump of PyTorch's flight recorder?");
}

std::vector<DumpValue> DumpValue::values() const {
  const auto& items = of_kind(PickleNode::kDict, "a dictionary").items;
  read(items.size());
  std::vector<DumpValue> values;
  for (std::size_t i = 1; i < items.size(); i += 2) {
    values.push_back(DumpValue(*document_, path_ + "[" + std::to_string(i / 2) + "]", items[i]));
  }
  return values;
}

std::size_t DumpValue::size() const { return of_kind(PickleNode::kList, "a list").items.size(); }

DumpValue DumpValue::operator[](std::size_t index) const {
  if (index >= size()) refuse(" has no item " + std::to_string(index));
  read(1);
  return {*document_, path_ + "[" + std::to_string(index) + "]", node_->items[index]};
}

std::string DumpValue::text() const {
  const auto& text = of_kind(PickleNode::kText, "a text").text;
  read(text.size());
  return text;
}

std::int64_t DumpValue::integer() const { return of_kind(PickleNode::kInt, "an integer").integer; }

double DumpValue::number() const {
  if (node_->kind == PickleNode::kInt) return static_cast<double>(node_->integer);
  const double number = of_kind(PickleNode::kFloat, "a number").number;
  if (!std::isfinite(number)) refuse(" is not finite");
  return number;
}

const PickleNode& DumpValue::of_kind(PickleNode::Kind kind, const char* name) const {
  if (node_->kind != kind) refuse(std::string(" is not ") + name);
  return *node_;
}

void DumpValue::read(std::uint64_t amount) const {
  if (amount > document_->reads_left) refuse(" repeats its values more often than a dump does");
  document_->reads_left -= amount;
}

std::string shortened(std::string name) {
  if (name.size() > kShownBytes) name = name.substr(0, kShownBytes) + "...";
  return printable(name);
}

}  // namespace phalanx
