// SPDX-License-Identifier: Apache-2.0
#include "framework/ps/protocol/table_spec.h"

#include <algorithm>
#include <array>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/parts.h"

namespace phalanx::ps {
namespace {

constexpr std::array<std::pair<const char*, c10::ScalarType>, 6> kDtypes{{{"float32", c10::kFloat},
                                                                          {"float64", c10::kDouble},
                                                                          {"float16", c10::kHalf},
                                                                          {"bfloat16", c10::kBFloat16},
                                                                          {"int32", c10::kInt},
                                                                          {"int64", c10::kLong}}};

}  // namespace

c10::ScalarType dtype_of(const std::string& name) {
  const auto* const found = std::ranges::find_if(kDtypes, [&](const auto& one) { return one.first == name; });
  if (found == kDtypes.end()) throw ConfigError("parameter servers hold no elements of type \"" + name + "\"");
  return found->second;
}

std::string name_of(c10::ScalarType dtype) {
  const auto* const found = std::ranges::find(kDtypes, dtype, &std::pair<const char*, c10::ScalarType>::second);
  if (found == kDtypes.end()) {
    throw ConfigError(std::string("parameter servers hold no elements of type ") + c10::toString(dtype));
  }
  return found->first;
}

std::int64_t begin_of_shard(const TableSpec& spec, int shard, int shards) {
  return part_begin(spec.elements, shards, shard);
}

}  // namespace phalanx::ps
