// SPDX-License-Identifier: Apache-2.0
// The layout of the archive follows torch/csrc/export/pt2_archive_constants.h of PyTorch 2.13.
#include "models/exported/archive.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "framework/base/checked_product.h"
#include "framework/base/error.h"

namespace phalanx::exported {
namespace {

constexpr int kSchema = 8;  // major version

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw ConfigError("model.file: " + path + ": " + why);
}

constexpr std::int64_t kMaxBytes = std::int64_t{1} << 46;
constexpr std::int64_t kMaxExpanded = std::int64_t{64} << 20;  // bytes of a buffer with strides of 0

StoredZip opened(const std::string& path) {
  try {
    return StoredZip(path);
  } catch (const DataError& error) {
    throw ConfigError(std::string("model.file: cannot be read as a program of torch.export.save: ") + error.what());
  }
}

// Parses a size, a stride or an offset, which must be neither negative nor symbolic.
std::int64_t size_of(const JsonValue& value) {
  const auto size = value.get<std::int64_t>("as_int");
  if (size < 0) value.refuse("is " + std::to_string(size) + ", which is negative");
  return size;
}

std::vector<std::int64_t> sizes_of(const JsonValue& list) {
  std::vector<std::int64_t> sizes;
  for (const auto& entry : list.elements()) sizes.push_back(size_of(entry));
  return sizes;
}

// The layout of a tensor in its record.
struct Layout {
  at::ScalarType dtype;
  std::vector<std::int64_t> sizes, strides;
  std::int64_t offset = 0;

  // Returns the bytes needed from the beginning of the record, but at most kMaxBytes, even for malformed files.
  std::int64_t bytes_needed() const {
    std::int64_t last = offset;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (sizes[i] == 0) return 0;
      std::int64_t step = 0;
      if (__builtin_mul_overflow(sizes[i] - 1, strides[i], &step) || __builtin_add_overflow(last, step, &last)) {
        return kMaxBytes;
      }
    }
    return last >= kMaxBytes / 16 ? kMaxBytes : (last + 1) * static_cast<std::int64_t>(at::elementSize(dtype));
  }

  // Returns the bytes of the elements, at most kMaxBytes.
  std::int64_t bytes() const {
    const auto all = checked_product(sizes, static_cast<std::int64_t>(at::elementSize(dtype)));
    return std::min(all.value_or(kMaxBytes), kMaxBytes);
  }
};

Layout layout_of(const JsonValue& meta) {
  Layout layout{.dtype = dtype_of(meta.get<int>("dtype")),
                .sizes = sizes_of(meta.at("sizes")),
                .strides = sizes_of(meta.at("strides")),
                .offset = size_of(meta.at("storage_offset"))};
  if (layout.dtype == at::ScalarType::Undefined) meta.refuse("has a dtype that is not supported");
  if (layout.sizes.size() != layout.strides.size()) meta.refuse("has different numbers of strides and sizes");
  return layout;
}

}  // namespace

at::ScalarType dtype_of(int serialized) {
  if (serialized >= 1 && serialized <= 12) return static_cast<at::ScalarType>(serialized - 1);
  return serialized == 13 ? at::kBFloat16 : at::ScalarType::Undefined;
}

Archive::Archive(const std::string& path) : path_(path), zip_(opened(path)) {
  if (!zip_.entries().empty()) root_ = zip_.entries()[0].name.substr(0, zip_.entries()[0].name.find('/') + 1);
  if (zip_.find(root_ + "archive_format") == nullptr || record("archive_format") != "pt2") {
    refuse(path, "is not a program of torch.export.save");
  }
  if (record("archive_version") != "0") refuse(path, "has archive version " + record("archive_version") + ", not 0");
  if (record("byteorder") != "little") refuse(path, "is not of little-endian byte order");
}

std::string Archive::record(const std::string& name) const {
  const auto* const entry = zip_.find(root_ + name);
  if (entry == nullptr) refuse(path_, "has no record " + name);
  return zip_.read(*entry);
}

JsonValue Archive::parsed(const std::string& name) const { return parse_json(record(name), path_ + ": " + name); }

nlohmann::ordered_json Archive::program() const {
  const auto program = parsed("models/model.json");
  const int major = program.has("schema_version") ? program.at("schema_version").get_or("major", 0) : 0;
  if (major != kSchema) {
    refuse(path_, "has schema version " + std::to_string(major) + ", not " + std::to_string(kSchema) +
                      ": export it again with torch 2.13");
  }
  return program.raw();
}

at::Tensor Archive::memory_of(const std::string& name) const {
  const auto bytes = record(name);
  at::Tensor memory = at::empty({static_cast<std::int64_t>(bytes.size())}, at::kByte);
  if (!bytes.empty()) std::memcpy(memory.mutable_data_ptr(), bytes.data(), bytes.size());
  return memory;
}

std::map<std::string, at::Tensor> Archive::tensors(const std::string& kind) const {
  const std::string folder = "data/" + kind + "/";
  std::map<std::string, at::Tensor> all, records;
  std::map<std::string, std::int64_t> copied;                       // bytes of parameters copied from a record
  std::map<std::pair<std::string, std::string>, at::Tensor> views;  // by record and layout
  const auto config = parsed(folder + "model_" + kind + "_config.json");
  for (const auto& [name, entry] : config.at("config").members()) {
    if (entry.get<bool>("use_pickle")) refuse(path_, name + " is pickled, which only Python can read");
    const auto meta = entry.at("tensor_meta");
    const auto record_name = folder + entry.get<std::string>("path_name");
    auto& view = views[{record_name, meta.raw().dump()}];
    if (!view.defined()) {
      const auto layout = layout_of(meta);
      auto& memory = records[record_name];
      if (!memory.defined()) memory = memory_of(record_name);
      if (layout.bytes_needed() > memory.numel()) refuse(path_, name + " has more elements than " + record_name);
      const bool is_param = entry.get<bool>("is_param");  // a parameter is copied into its own memory
      if (!is_param && layout.bytes() > std::max(memory.numel(), kMaxExpanded)) {
        refuse(path_, name + " repeats the few bytes of " + record_name + " more often than any model does");
      }
      if (is_param && layout.bytes() > memory.numel() - copied[record_name]) {
        refuse(path_, name + ", a parameter, overlaps itself or another one in " + record_name);
      }
      if (is_param) copied[record_name] += layout.bytes();
      view = at::empty({0}, layout.dtype);
      view.set_(memory.storage(), layout.offset, layout.sizes, layout.strides);
      if (is_param) view = view.contiguous().set_requires_grad(meta.get<bool>("requires_grad"));
    }
    all.emplace(name, view);
  }
  return all;
}

}  // namespace phalanx::exported
