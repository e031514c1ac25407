#include "engine/checkpoint/safetensors.h"

#include <ATen/ops/empty.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>

#include "framework/base/error.h"
#include "framework/base/files.h"

namespace phalanx {
namespace {

static_assert(std::endian::native == std::endian::little, "elements are written as they lie in memory");

const std::map<std::string, at::ScalarType>& dtypes() {
  static const std::map<std::string, at::ScalarType> all{
      {"F32", at::kFloat}, {"F64", at::kDouble}, {"I64", at::kLong}, {"I32", at::kInt}, {"U8", at::kByte}};
  return all;
}

std::string name_of(at::ScalarType dtype, const std::string& path, const std::string& tensor) {
  for (const auto& [name, type] : dtypes()) {
    if (type == dtype) return name;
  }
  throw DataError(path + ": tensor " + tensor + " has dtype " + c10::toString(dtype) + ", which is not written");
}

struct Entry {
  std::string name;
  at::ScalarType dtype;
  std::vector<std::int64_t> shape;
  std::uint64_t begin, end;  // in the part after the header
};

std::vector<std::uint64_t> whole_numbers(const nlohmann::ordered_json& list) {
  for (const auto& item : list) {
    if (!item.is_number_unsigned()) throw std::out_of_range(item.dump() + " is no size");
  }
  return list.get<std::vector<std::uint64_t>>();
}

Entry parse_entry(const std::string& name, const nlohmann::ordered_json& json) {
  const auto dtype_name = json.at("dtype").get<std::string>();
  const auto found = dtypes().find(dtype_name);
  if (found == dtypes().end()) throw std::out_of_range("dtype " + dtype_name + " of " + name + " is not read");
  const auto shape = whole_numbers(json.at("shape")), offsets = whole_numbers(json.at("data_offsets"));
  return {name, found->second, {shape.begin(), shape.end()}, offsets.at(0), offsets.at(1)};
}

at::Tensor read_tensor(const Entry& entry, std::string_view data) {
  std::uint64_t bytes = c10::elementSize(entry.dtype);
  for (const auto size : entry.shape) {
    if (size < 0 || __builtin_mul_overflow(bytes, static_cast<std::uint64_t>(size), &bytes)) {
      throw std::out_of_range("shape of " + entry.name);
    }
  }
  if (entry.begin > entry.end || entry.end > data.size() || entry.end - entry.begin != bytes) {
    throw std::out_of_range("data_offsets of " + entry.name);
  }
  at::Tensor tensor = at::empty(entry.shape, entry.dtype);
  std::memcpy(tensor.data_ptr(), data.data() + entry.begin, bytes);
  return tensor;
}

}  // namespace

void save_safetensors(const std::string& path, const NamedTensors& tensors) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  std::string data;
  for (const auto& [name, tensor] : tensors) {
    if (header.contains(name)) throw DataError(path + ": two tensors are called " + name);
    const at::Tensor dense = tensor.detach().contiguous();
    const auto begin = data.size();
    data.append(static_cast<const char*>(dense.data_ptr()), dense.nbytes());
    header[name] = {{"dtype", name_of(dense.scalar_type(), path, name)},
                    {"shape", dense.sizes().vec()},
                    {"data_offsets", {begin, data.size()}}};
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // elements start at a multiple of 8
  const std::uint64_t length = text.size();
  write_atomically(path, std::string(reinterpret_cast<const char*>(&length), sizeof(length)) + text + data);
}

NamedTensors load_safetensors(const std::string& path) {
  const std::string file = read_file(path);
  std::uint64_t length = 0;
  if (file.size() < sizeof(length)) {
    throw DataError(path + ": ends at byte " + std::to_string(file.size()) + ", in the header's length");
  }
  std::memcpy(&length, file.data(), sizeof(length));
  if (length > file.size() - sizeof(length)) {
    throw DataError(path + ": says that its header has " + std::to_string(length) + " bytes, but the file has " +
                    std::to_string(file.size()));
  }
  const auto begin = sizeof(length) + length;
  NamedTensors tensors;
  try {
    const auto header = nlohmann::ordered_json::parse(file.substr(sizeof(length), length));
    if (!header.is_object()) throw std::invalid_argument("it is no JSON object");
    for (const auto& [name, json] : header.items()) {
      if (name == "__metadata__") continue;
      tensors.emplace_back(name, read_tensor(parse_entry(name, json), std::string_view(file).substr(begin)));
    }
  } catch (const std::exception& error) {
    throw DataError(path + ": the header (bytes 8 to " + std::to_string(begin) + ") is damaged: " + error.what());
  }
  return tensors;
}

}  // namespace phalanx
