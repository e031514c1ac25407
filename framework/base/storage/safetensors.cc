// SPDX-License-Identifier: Apache-2.0
#include "framework/base/storage/safetensors.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "framework/base/checked_product.h"
#include "framework/base/error.h"
#include "framework/base/json.h"
#include "framework/base/printable.h"
#include "framework/base/storage/safetensors_layout.h"
#include "framework/base/storage/safetensors_writer.h"
#include "framework/base/storage/tensor_memory.h"
#include "framework/base/storage/unsupported_dtype.h"

namespace phalanx {
namespace {

static_assert(std::endian::native == std::endian::little, "elements are written as they lie in memory");

using Entry = SafetensorsFile::Entry;

constexpr std::uint64_t kMaxHeader = 100'000'000;  // bytes; the same limit as in the format's own library

// Thrown for a file that is not damaged, but has a tensor that cannot be represented here.
struct Unsupported {
  std::string why;
};

Entry parse_entry(const std::string& name, const JsonValue& json) {
  const auto dtype_name = json.get<std::string>("dtype");
  const auto dtype = safetensors_dtype(dtype_name);
  if (!dtype) throw Unsupported{unsupported_dtype(name, "has dtype " + printable(dtype_name))};
  const auto offsets = json.get<std::vector<std::uint64_t>>("data_offsets");
  if (offsets.size() != 2) json.at("data_offsets").refuse("has " + std::to_string(offsets.size()) + " numbers, not 2");
  for (const auto size : json.get<std::vector<std::int64_t>>("shape")) {
    if (size < 0) json.at("shape").refuse("has the negative size " + std::to_string(size));
  }
  return {name, *dtype, json.get<std::vector<std::int64_t>>("shape"), offsets[0], offsets[1]};
}

// Checks an entry before any memory is allocated for it.
void check_entry(const Entry& entry, std::uint64_t data_bytes) {
  const auto bytes = checked_product(entry.shape, static_cast<std::int64_t>(c10::elementSize(entry.dtype)));
  if (!bytes) throw std::out_of_range("shape of " + entry.name);
  if (entry.begin > entry.end || entry.end > data_bytes ||
      entry.end - entry.begin != static_cast<std::uint64_t>(*bytes)) {
    throw std::out_of_range("data_offsets of " + entry.name);
  }
}

// Checks that the tensors lie one after the other and fill the file, so that each byte belongs to exactly one of them.
void check_coverage(const std::vector<Entry>& entries, std::uint64_t data_bytes) {
  std::vector<const Entry*> sorted;
  sorted.reserve(entries.size());
  for (const auto& entry : entries) sorted.push_back(&entry);
  std::ranges::sort(sorted, {}, [](const Entry* entry) { return std::pair(entry->begin, entry->end); });
  std::uint64_t covered = 0;
  for (const auto* entry : sorted) {
    if (entry->begin < covered) throw std::out_of_range(entry->name + " overlaps the tensor before it");
    if (entry->begin > covered) {
      throw std::out_of_range("no tensor has the bytes from " + std::to_string(covered) + " to " + entry->name);
    }
    covered = entry->end;
  }
  if (covered != data_bytes) {
    throw std::out_of_range(std::to_string(data_bytes - covered) + " bytes follow the last tensor");
  }
}

std::vector<SafetensorsLayout::Tensor> described(const NamedTensors& tensors) {
  std::vector<SafetensorsLayout::Tensor> all;
  for (const auto& [name, tensor] : tensors) all.push_back({name, tensor.scalar_type(), tensor.sizes().vec()});
  return all;
}

}  // namespace

void lay_out_safetensors(const std::string& path, const NamedTensors& tensors, std::string& file) {
  const SafetensorsLayout layout(path, described(tensors));
  file.resize(layout.bytes);
  char* next = file.data();
  const auto append = [&next](const void* data, std::size_t count) {
    if (count > 0) std::memcpy(next, data, count);
    next += count;
  };
  append(layout.head.data(), layout.head.size());
  for (const auto& [name, tensor] : tensors) {
    const at::Tensor dense = tensor.detach().to(at::kCPU).contiguous();
    append(dense.data_ptr(), dense.nbytes());
  }
}

void save_safetensors(const std::string& path, const NamedTensors& tensors) {
  SafetensorsWriter writer(path, described(tensors));
  for (std::size_t i = 0; i < tensors.size(); ++i) writer.append(i, tensors[i].second);
  writer.finish();
}

SafetensorsFile::SafetensorsFile(const std::string& path) : path_(path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw DataError(path + ": " + std::strerror(errno));
  std::error_code error;
  const std::uint64_t bytes = std::filesystem::file_size(path, error);
  if (error) throw DataError(path + ": " + error.message());  // a folder, for instance
  std::uint64_t length = 0;
  if (bytes < sizeof(length) || !file.read(reinterpret_cast<char*>(&length), sizeof(length))) {
    throw DataError(path + ": ends at byte " + std::to_string(bytes) + ", in the header's length");
  }
  if (length > bytes - sizeof(length)) {
    throw DataError(path + ": says that its header has " + std::to_string(length) + " bytes, but the file has " +
                    std::to_string(bytes));
  }
  if (length > kMaxHeader) {
    throw DataError(path + ": its header has " + std::to_string(length) + " bytes; at most " +
                    std::to_string(kMaxHeader) + " are allowed");
  }
  data_begin_ = sizeof(length) + length;
  std::string text(length, '\0');
  if (!file.read(text.data(), static_cast<std::streamsize>(length))) throw DataError(path + ": cannot be read");
  try {
    for (const auto& [name, json] : parse_json(text, "JSON").members()) {
      if (name == "__metadata__") continue;
      entries_.push_back(parse_entry(name, json));
      check_entry(entries_.back(), bytes - data_begin_);
    }
    check_coverage(entries_, bytes - data_begin_);
  } catch (const Unsupported& unsupported) {
    throw DataError(path + ": " + unsupported.why);
  } catch (const std::exception& error) {
    throw DataError(path + ": the header (bytes 8 to " + std::to_string(data_begin_) + ") is damaged: " + error.what());
  }
}

at::Tensor SafetensorsFile::read(const Entry& entry) const {
  at::Tensor tensor = tensor_memory(path_, entry.name, entry.shape, entry.dtype);
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
