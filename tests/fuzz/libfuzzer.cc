// SPDX-License-Identifier: Apache-2.0
// The entry points that libFuzzer calls. --target=NAME selects the target; libFuzzer itself ignores flags that begin
// with two dashes.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "framework/base/log.h"
#include "tests/fuzz/target.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace phalanx::fuzz {
namespace {

const Target* chosen = nullptr;

const Target* find_target(int count, char** arguments) {
  constexpr std::string_view kFlag = "--target=";
  for (int i = 1; i < count; ++i) {
    const std::string_view argument = arguments[i];
    if (!argument.starts_with(kFlag)) continue;
    const auto found = std::ranges::find(targets(), argument.substr(kFlag.size()), &Target::name);
    if (found != targets().end()) return &*found;
  }
  std::fputs("--target=NAME is missing; the targets are:\n", stderr);
  for (const auto& target : targets()) std::fprintf(stderr, "  %s\n", target.name.c_str());
  return nullptr;
}

std::string mutated(std::string text, std::size_t max_size) {
  const std::size_t size = std::min(text.size(), max_size);
  text.resize(std::max<std::size_t>(max_size, 1));
  text.resize(::LLVMFuzzerMutate(reinterpret_cast<std::uint8_t*>(text.data()), size, text.size()));
  return text;
}

}  // namespace
}  // namespace phalanx::fuzz

extern "C" int LLVMFuzzerInitialize(int* count, char*** arguments) {
  phalanx::configure_log({.stderr_threshold = phalanx::LogLevel::kNone});
  phalanx::fuzz::chosen = phalanx::fuzz::find_target(*count, *arguments);
  if (phalanx::fuzz::chosen == nullptr) std::exit(2);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  phalanx::fuzz::accepts(*phalanx::fuzz::chosen, {reinterpret_cast<const char*>(data), size});
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  using namespace phalanx::fuzz;
  constexpr std::size_t kGrowth = 64;  // bytes by which one mutation may lengthen a part
  Random random(seed + 1);
  if (chosen->mutate == nullptr || random() % 8 == 0) return ::LLVMFuzzerMutate(data, size, max_size);
  const auto mutate = [](std::string text) {
    const std::size_t most = text.size() + kGrowth;
    return mutated(std::move(text), most);
  };
  const std::string changed = chosen->mutate({reinterpret_cast<const char*>(data), size}, mutate, random);
  const std::size_t bytes = std::min(changed.size(), max_size);
  std::memcpy(data, changed.data(), bytes);
  return bytes;
}
