#include "framework/base/reason.h"

#include <algorithm>
#include <new>
#include <string_view>

namespace phalanx {
namespace {

// "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: ...": a place in LibTorch, and a condition there.
std::string_view without_place(std::string_view text) {
  constexpr std::string_view kPlace = "[enforce fail at ", kConditionEnds = ". ";
  if (!text.starts_with(kPlace)) return text;
  const auto condition = text.find(kConditionEnds, std::min(text.find(']'), text.size()));
  return condition == text.npos ? text : text.substr(condition + kConditionEnds.size());
}

// Where LibTorch's what() goes on with a trace.
std::size_t end_of_message(std::string_view text) {
  return std::min(text.find("\nException raised from "), text.find("\nframe #"));
}

// "CUDA out of memory. Tried to allocate 2 GiB. GPU 0 has a total capacity of 79 GiB of which 1 GiB is free. ...": the
// rest is about LibTorch's allocator.
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
  const auto end = end_of_message(text);
  return std::string(end == text.npos ? text : without_place(text.substr(0, end)));
}

}  // namespace phalanx
