// SPDX-License-Identifier: Apache-2.0
#include "framework/base/storage/safetensors_layout.h"

#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "framework/base/error.h"

namespace phalanx {
namespace {

const std::map<std::string, at::ScalarType>& dtypes() {
  static const std::map<std::string, at::ScalarType> all{
      {"F16", at::kHalf},  {"BF16", at::kBFloat16}, {"F32", at::kFloat}, {"F64", at::kDouble}, {"I8", at::kChar},
      {"I16", at::kShort}, {"I32", at::kInt},       {"I64", at::kLong},  {"U8", at::kByte},    {"BOOL", at::kBool}};
  return all;
}

std::string name_of(at::ScalarType dtype, const std::string& path, const std::string& tensor) {
  for (const auto& [name, type] : dtypes()) {
    if (type == dtype) return name;
  }
  throw DataError(path + ": tensor " + tensor + " has dtype " + c10::toString(dtype) + ", which is not supported");
}

std::uint64_t bytes_of(const SafetensorsLayout::Tensor& tensor) {
  std::uint64_t bytes = c10::elementSize(tensor.dtype);
  for (const auto size : tensor.shape) bytes *= static_cast<std::uint64_t>(size);
  return bytes;
}

}  // namespace

SafetensorsLayout::SafetensorsLayout(const std::string& path, const std::vector<Tensor>& tensors) {
  // Python's libraries ask which framework wrote the tensors, and refuse a file that does not say so.
  nlohmann::ordered_json header{{"__metadata__", {{"format", "pt"}}}};
  std::set<std::string_view> names;
  std::uint64_t begin = 0;
  for (const auto& tensor : tensors) {
    if (!names.insert(tensor.name).second) throw DataError(path + ": two tensors are called " + tensor.name);
    const std::uint64_t end = begin + bytes_of(tensor);
    header[tensor.name] = {
        {"dtype", name_of(tensor.dtype, path, tensor.name)}, {"shape", tensor.shape}, {"data_offsets", {begin, end}}};
    entries.push_back({tensor.name, tensor.dtype, tensor.shape, begin, end});
    begin = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // elements start at a multiple of 8
  const std::uint64_t length = text.size();
  head.resize(sizeof(length));
  std::memcpy(head.data(), &length, sizeof(length));
  head += text;
  bytes = head.size() + begin;
}

std::optional<at::ScalarType> safetensors_dtype(const std::string& name) {
  const auto found = dtypes().find(name);
  if (found == dtypes().end()) return std::nullopt;
  return found->second;
}

}  // namespace phalanx
