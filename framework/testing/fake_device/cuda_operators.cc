// SPDX-License-Identifier: Apache-2.0
#include "framework/testing/fake_device/cuda_operators.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

namespace phalanx::testing {
namespace {

// Sorted. Names of functions in C++: "add", "add_" in place, "add_out" with results.
constexpr std::string_view kOperators[] = {
#include "framework/testing/fake_device/cuda_operators.inc"
};

}  // namespace

bool is_on_cuda(const c10::FunctionSchema& schema) {
  constexpr std::string_view kNamespace = "aten::";
  if (!schema.name().starts_with(kNamespace)) return false;
  std::string function = schema.name().substr(kNamespace.size());
  const auto& arguments = schema.arguments();
  if (std::ranges::any_of(arguments, [](const auto& argument) { return argument.is_out(); })) function += "_out";
  return std::ranges::binary_search(kOperators, std::string_view(function));
}

}  // namespace phalanx::testing
