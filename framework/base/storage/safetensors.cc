#include "framework/base/storage/safetensors.h"

#include <ATen/ops/empty.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <string_view>

#include "framework/base/error.h"
#include "framework/base/files.h"

namespace phalanx {
namespace {

static_assert(std::endian::native == std::endian::little, "elements are written as they lie in memory");

using Entry = SafetensorsFile::Entry;

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

std::vector<std::uint64_t> whole_numbers(const nlohmann::ordered_json& list) {
  for (const auto& item : list) {
    if (!item.is_number_unsigned()) throw std::out_of_range(item.dump() + " is not a size");
  }
  return list.get<std::vector<std::uint64_t>>();
}

Entry parse_entry(const std::string& name, const nlohmann::ordered_json& json) {
  const auto dtype_name = json.at("dtype").get<std::string>();
  const auto found = dtypes().find(dtype_name);
  if (found == dtypes().end()) throw std::out_of_range("dtype " + dtype_name + " of " + name + " is not supported");
  const auto shape = whole_numbers(json.at("shape")), offsets = whole_numbers(json.at("data_offsets"));
  return {name, found->second, {shape.begin(), shape.end()}, offsets.at(0), offsets.at(1)};
}

// Before anything is allocated for it.
void check_entry(const Entry& entry, std::uint64_t data_bytes) {
  std::uint64_t bytes = c10::elementSize(entry.dtype);
  for (const auto size : entry.shape) {
    if (size < 0 || __builtin_mul_overflow(bytes, static_cast<std::uint64_t>(size), &bytes)) {
      throw std::out_of_range("shape of " + entry.name);
    }
  }
  if (entry.begin > entry.end || entry.end > data_bytes || entry.end - entry.begin != bytes) {
    throw std::out_of_range("data_offsets of " + entry.name);
  }
}

std::string header_of(const std::string& path, const NamedTensors& tensors) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  std::set<std::string_view> names;
  std::uint64_t begin = 0;
  for (const auto& [name, tensor] : tensors) {
    if (!names.insert(name).second) throw DataError(path + ": two tensors are called " + name);
    header[name] = {{"dtype", name_of(tensor.scalar_type(), path, name)},
                    {"shape", tensor.sizes().vec()},
                    {"data_offsets", {begin, begin + tensor.nbytes()}}};
    begin += tensor.nbytes();
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // elements start at a multiple of 8
  return text;
}

}  // namespace

void lay_out_safetensors(const std::string& path, const NamedTensors& tensors, std::string& file) {
  const std::string header = header_of(path, tensors);
  const std::uint64_t length = header.size();
  std::size_t bytes = sizeof(length) + header.size();
  for (const auto& [name, tensor] : tensors) bytes += tensor.nbytes();
  file.resize(bytes);
  char* next = file.data();
  const auto append = [&next](const void* data, std::size_t count) {
    if (count > 0) std::memcpy(next, data, count);
    next += count;
  };
  append(&length, sizeof(length));
  append(header.data(), header.size());
  for (const auto& [name, tensor] : tensors) {
    const at::Tensor dense = tensor.detach().to(at::kCPU).contiguous();
    append(dense.data_ptr(), dense.nbytes());
  }
}

void save_safetensors(const std::string& path, const NamedTensors& tensors) {
  std::string file;
  lay_out_safetensors(path, tensors, file);
  write_atomically(path, file);
}

SafetensorsFile::SafetensorsFile(const std::string& path) : path_(path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw DataError(path + ": " + std::strerror(errno));
  const std::uint64_t bytes = std::filesystem::file_size(path);
  std::uint64_t length = 0;
  if (bytes < sizeof(length) || !file.read(reinterpret_cast<char*>(&length), sizeof(length))) {
    throw DataError(path + ": ends at byte " + std::to_string(bytes) + ", in the header's length");
  }
  if (length > bytes - sizeof(length)) {
    throw DataError(path + ": says that its header has " + std::to_string(length) + " bytes, but the file has " +
                    std::to_string(bytes));
  }
  data_begin_ = sizeof(length) + length;
  std::string text(length, '\0');
  if (!file.read(text.data(), static_cast<std::streamsize>(length))) throw DataError(path + ": cannot be read");
  try {
    const auto header = nlohmann::ordered_json::parse(text);
    if (!header.is_object()) throw std::invalid_argument("it is not a JSON object");
    for (const auto& [name, json] : header.items()) {
      if (name == "__metadata__") continue;
      entries_.push_back(parse_entry(name, json));
      check_entry(entries_.back(), bytes - data_begin_);
    }
  } catch (const std::exception& error) {
    throw DataError(path + ": the header (bytes 8 to " + std::to_string(data_begin_) + ") is damaged: " + error.what());
  }
}

at::Tensor SafetensorsFile::read(const Entry& entry) const {
  at::Tensor tensor = at::empty(entry.shape, entry.dtype);
  std::ifstream file(path_, std::ios::binary);
  file.seekg(static_cast<std::streamoff>(data_begin_ + entry.begin));
  if (!file || (tensor.nbytes() > 0 &&
                !file.read(static_cast<char*>(tensor.data_ptr()), static_cast<std::streamsize>(tensor.nbytes())))) {
    throw DataError(path_ + ": tensor " + entry.name + " cannot be read");
  }
  return tensor;
}

NamedTensors load_safetensors(const std::string& path) {
  const SafetensorsFile file(path);
  NamedTensors tensors;
  for (const auto& entry : file.entries()) tensors.emplace_back(entry.name, file.read(entry));
  return tensors;
}

}  // namespace phalanx
