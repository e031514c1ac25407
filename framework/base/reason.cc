// SPDX-License-Identifier: Apache-2.0
#include "framework/base/reason.h"

#include <algorithm>
#include <new>
#include <string>
#include <string_view>

namespace phalanx {
namespace {

// Erases every "[enforce fail at alloc_cpu.cpp:127] err == 0. ", which is a source line of LibTorch or Gloo and a
// condition, and nlohmann's "[json.exception.type_error.302] ".
std::string without_places(std::string text) {
  constexpr std::string_view kPlace = "[enforce fail at ", kConditionEnds = ". ", kJson = "[json.exception.",
                             kTagEnds = "] ";
  for (auto at = text.find(kPlace); at != text.npos; at = text.find(kPlace, at)) {
    const auto tag = text.find(']', at), condition = text.find(kConditionEnds, std::min(tag, text.size()));
    if (condition == text.npos) break;
    text.erase(at, condition + kConditionEnds.size() - at);
  }
  for (auto at = text.find(kJson); at != text.npos; at = text.find(kJson, at)) {
    const auto end = text.find(kTagEnds, at);
    if (end == text.npos) break;
    text.erase(at, end + kTagEnds.size() - at);
  }
  return text;
}

// Returns where the message of a LibTorch what() ends and its stack trace begins.
std::size_t end_of_message(std::string_view text) {
  return std::min(text.find("\nException raised from "), text.find("\nframe #"));
}

// Shortens "CUDA out of memory. Tried to allocate 2 GiB. GPU 0 has a total capacity of 79 GiB of which 1 GiB is free.
// ...", whose rest is about LibTorch's allocator.
std::string of_device_memory(std::string_view text) {
  constexpr std::string_view kEnd = " is free.";
  const auto end = text.find(kEnd);
  return std::string(end == text.npos ? text : text.substr(0, end + kEnd.size())) +
         " Use smaller batches, train.accumulate or train.checkpoint_activations, or divide the model among more "
         "devices.";
}

}  // namespace

std::string reason(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return "there is not enough memory";
  const std::string_view text = error.what();
  if (text.starts_with("CUDA out of memory.")) return of_device_memory(text);
  return without_places(std::string(text.substr(0, end_of_message(text))));
}

}  // namespace phalanx
