// SPDX-License-Identifier: Apache-2.0
#include "phalanx/internal/slice_state.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <map>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/named_tensors.h"
#include "framework/base/storage/safetensors.h"

namespace phalanx {
namespace {

constexpr const char* kUpdates = "updates";
constexpr const char* kLearningRate = "learning_rate";
constexpr const char* kParts = "parts";
constexpr const char* kWhole = "whole";  // the place of state that belongs to a parameter as a whole

// "exp_avg of layer1.weight at 128"
std::string key_of(const std::string& kind, const std::string& parameter, const std::string& place) {
  return kind + " of " + parameter + " at " + place;
}

// A part of the state of one kind for one parameter.
struct Piece {
  std::int64_t begin;  // number of its first element in the parameter
  at::Tensor values;
};

// The contents of all parts.
struct SavedState {
  std::map<std::string, at::Tensor> others{};          // by name
  std::map<std::string, std::vector<Piece>> pieces{};  // by the key without its place
  std::string path;

  const at::Tensor& at(const std::string& name) const {
    const auto found = others.find(name);
    if (found == others.end()) throw DataError(path + ": has no " + name);
    return found->second;
  }
};

void add(SavedState& saved, const std::string& name, at::Tensor values) {
  const auto place = name.rfind(" at ");
  const char* const end = name.data() + name.size();
  std::int64_t begin = 0;
  if (place == std::string::npos ||
      std::from_chars(name.data() + place + 4, end, begin) != std::from_chars_result{end, std::errc()}) {
    saved.others[name] = std::move(values);
    return;
  }
  saved.pieces[name.substr(0, place)].push_back({begin, std::move(values)});
}

SavedState read_parts(const std::function<std::string(int)>& path_of) {
  SavedState saved{.path = path_of(0)};
  std::int64_t parts = 1;
  for (int part = 0; part < parts; ++part) {
    for (auto& [name, values] : load_safetensors(path_of(part))) add(saved, name, std::move(values));
    if (part == 0) parts = saved.at(kParts).item<std::int64_t>();
  }
  return saved;
}

// Fills the state of a segment with the pieces that overlap it.
void fill(const at::Tensor& state, const Segment& segment, const std::string& kind, const SavedState& saved) {
  const std::string name = kind + " of " + segment.name;
  const auto found = saved.pieces.find(name);
  std::int64_t filled = 0;
  for (const auto& piece : found == saved.pieces.end() ? std::vector<Piece>() : found->second) {
    const auto first = std::max(segment.offset, piece.begin);
    const auto last = std::min(segment.offset + segment.count, piece.begin + piece.values.numel());
    if (first >= last) continue;
    state.narrow(0, segment.begin + first - segment.offset, last - first)
        .copy_(piece.values.narrow(0, first - piece.begin, last - first));
    filled += last - first;
  }
  if (filled != segment.count) throw DataError(saved.path + ": has no state " + name + " for all of its elements");
}

}  // namespace

void save_slice_state(Optimizer& optimizer, const std::vector<Slice>& slices, const std::string& path, int parts) {
  NamedTensors tensors{{kUpdates, at::full({1}, optimizer.updates(), at::kLong)},
                       {kLearningRate, at::full({1}, optimizer.learning_rate(), at::kDouble)},
                       {kParts, at::full({1}, parts, at::kLong)}};
  for (const auto& state : optimizer.state()) {
    if (!state.parameter.empty()) {
      tensors.emplace_back(key_of(state.kind, state.parameter, kWhole), state.values.cpu());
      continue;
    }
    for (const auto& segment : slices.at(state.slice).segments) {
      tensors.emplace_back(key_of(state.kind, segment.name, std::to_string(segment.offset)),
                           state.values.narrow(0, segment.begin, segment.count).cpu());
    }
  }
  save_safetensors(path, tensors);
}

void load_slice_state(Optimizer& optimizer, const std::vector<Slice>& slices,
                      const std::function<std::string(int)>& path_of) {
  const at::NoGradGuard no_grad;
  const SavedState saved = read_parts(path_of);
  for (const auto& state : optimizer.state()) {
    if (!state.parameter.empty()) {
      at::Tensor(state.values).copy_(saved.at(key_of(state.kind, state.parameter, kWhole)));
      continue;
    }
    for (const auto& segment : slices.at(state.slice).segments) fill(state.values, segment, state.kind, saved);
  }
  optimizer.set_updates(saved.at(kUpdates).item<std::int64_t>());
  optimizer.set_learning_rate(saved.at(kLearningRate).item<double>());
}

}  // namespace phalanx
