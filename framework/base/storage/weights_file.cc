// SPDX-License-Identifier: Apache-2.0
#include "framework/base/storage/weights_file.h"

#include <c10/util/accumulate.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/base/json.h"
#include "framework/base/text.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSafetensors = ".safetensors";

bool is_there(const fs::path& path) {
  std::error_code error;
  const bool there = fs::exists(path, error);
  if (error) throw DataError(path.string() + ": " + error.message());
  return there;
}

std::string find_in(const fs::path& folder) {
  constexpr std::array kNames{"model.safetensors.index.json", "model.safetensors", "pytorch_model.bin.index.json",
                              "pytorch_model.bin", "weights.safetensors"};
  for (const char* name : kNames) {
    if (is_there(folder / name)) return folder / name;
  }
  throw DataError(folder.string() + ": the folder has none of the files " + join({kNames.begin(), kNames.end()}, ", "));
}

// A clone without Git LFS has small text files in place of the large ones.
void refuse_pointer(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string line;
  if (!std::getline(file, line) || !line.starts_with("version https://git-lfs")) return;
  throw DataError(path + ": is a Git LFS pointer instead of the file; git lfs pull gets the file");
}

bool is_torch(const std::string& path) {
  return path.ends_with(".pt") || path.ends_with(".pth") || path.ends_with(".bin");
}

}  // namespace

std::int64_t WeightsFile::Entry::bytes() const {
  return c10::multiply_integers(shape) * static_cast<std::int64_t>(c10::elementSize(dtype));
}

WeightsFile::WeightsFile(const std::string& path) : path_(path) {
  if (!is_there(path)) throw DataError(path + ": no such file");
  const std::string file = fs::is_directory(path) ? find_in(path) : path;
  file.ends_with(".json") ? add_index(file) : add(file);
  std::set<std::string_view> names;
  for (const auto& entry : entries_) {
    if (!names.insert(entry.name).second) throw DataError(path + ": has two tensors that are called " + entry.name);
  }
}

void WeightsFile::add(const std::string& path) {
  refuse_pointer(path);
  const std::size_t file = parts_.size();
  auto& part = parts_.emplace_back();
  std::size_t index = 0;
  if (is_torch(path)) {
    for (const auto& one : part.torch.emplace(path).tensors()) {
      entries_.push_back({one.name, one.dtype, one.shape, file, index++});
    }
  } else if (path.ends_with(kSafetensors)) {
    for (const auto& one : part.safetensors.emplace(path).entries()) {
      entries_.push_back({one.name, one.dtype, one.shape, file, index++});
    }
  } else {
    throw DataError(
        path + ": its name is not that of a file of weights; such names end in .safetensors, .pt, .pth, .bin or .json");
  }
}

void WeightsFile::add_index(const std::string& path) {
  const std::string source = path + ": is not an index of weights, {\"weight_map\": {name: file}}";
  // Maps the name of each tensor to its file.
  const auto files = parse_json(read_file(path), source).get<std::map<std::string, std::string>>("weight_map");
  std::set<std::string> parts;
  for (const auto& [name, file] : files) parts.insert(file);
  for (const auto& part : parts) {
    const std::string file = fs::path(path).parent_path() / part;
    if (fs::path(part).has_parent_path() || part.ends_with(".json")) {
      throw DataError(path + ": names " + part + ", which is not a file of weights in the same folder");
    }
    if (!is_there(file)) throw DataError(path + ": names " + part + ", which is missing");
    add(file);
  }
  std::set<std::string> there;
  for (const auto& entry : entries_) there.insert(entry.name);
  for (const auto& [name, file] : files) {
    if (!there.contains(name)) throw DataError(path + ": says that " + name + " is in " + file + ", but it is not");
  }
}

at::Tensor WeightsFile::read(const Entry& entry) const {
  const auto& part = parts_.at(entry.file);
  return part.torch ? part.torch->read(part.torch->tensors().at(entry.index))
                    : part.safetensors->read(part.safetensors->entries().at(entry.index));
}

NamedTensors load_weights(const std::string& path) {
  const WeightsFile file(path);
  NamedTensors tensors;
  for (const auto& entry : file.entries()) tensors.emplace_back(entry.name, file.read(entry));
  return tensors;
}

std::vector<std::string> save_weights(const std::string& path, const NamedTensors& tensors, std::int64_t shard_bytes) {
  if (is_torch(path) && shard_bytes == 0) return save_torch(path, tensors), std::vector{path};
  if (is_torch(path))
    throw ConfigError(path + ": a .pt file cannot be split into parts; name it .safetensors, or give no size");
  if (!path.ends_with(kSafetensors)) {
    throw ConfigError(path + ": weights are written as .safetensors or .pt; use a name that ends in one of these");
  }
  if (shard_bytes <= 0) return save_safetensors(path, tensors), std::vector{path};
  std::vector<NamedTensors> shards(1);
  std::int64_t bytes = 0, total = 0;
  for (const auto& named : tensors) {
    const auto size = static_cast<std::int64_t>(named.second.nbytes());
    if (!shards.back().empty() && bytes + size > shard_bytes) shards.emplace_back(), bytes = 0;
    shards.back().push_back(named);
    bytes += size;
    total += size;
  }
  nlohmann::ordered_json index = {{"metadata", {{"total_size", total}}},
                                  {"weight_map", nlohmann::ordered_json::object()}};
  std::vector<std::string> written;
  const std::string stem = path.substr(0, path.size() - kSafetensors.size());
  for (std::size_t i = 0; i < shards.size(); ++i) {
    written.push_back(stem + format_text("-%05zu-of-%05zu.safetensors", i + 1, shards.size()));
    save_safetensors(written.back(), shards[i]);
    for (const auto& [name, tensor] : shards[i]) index["weight_map"][name] = fs::path(written.back()).filename();
  }
  written.push_back(path + ".index.json");
  write_atomically(written.back(), index.dump(2) + "\n");
  return written;
}

}  // namespace phalanx
