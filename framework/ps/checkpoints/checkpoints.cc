// SPDX-License-Identifier: Apache-2.0
#include "framework/ps/checkpoints/checkpoints.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/base/json.h"
#include "framework/base/storage/disk.h"
#include "framework/base/storage/safetensors.h"
#include "framework/base/text.h"

namespace phalanx::ps {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kKept = 2;
constexpr const char* kPrefix = "shards-";
constexpr const char* kValues = ".safetensors";
constexpr const char* kRecord = ".json";
constexpr const char* kTemporary = ".tmp";
constexpr const char* kDescription = "description";

at::Tensor tensor_of(const std::string& text) {
  at::Tensor bytes = at::empty({static_cast<std::int64_t>(text.size())}, at::kByte);
  if (!text.empty()) std::memcpy(bytes.mutable_data_ptr(), text.data(), text.size());
  return bytes;
}

std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    files.push_back(entry->path());
  }
  if (error) throw DataError(folder.string() + ": cannot be listed: " + error.message());
  return files;
}

}  // namespace

Checkpoints::Checkpoints(const std::string& folder) : folder_(folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw DataError(folder + ": cannot keep checkpoints there: " + error.message());
  for (const auto& path : files_in(folder)) {
    if (path.filename().string().starts_with(kPrefix) && path.extension() == kTemporary) {
      fs::remove(path, error);  // incomplete
    }
  }
  if (const auto all = numbers(); !all.empty()) next_ = all.back() + 1;
}

std::string Checkpoints::path_of(std::int64_t number, const char* ending) const {
  return folder_ + "/" + kPrefix + format_text("%010lld", static_cast<long long>(number)) + ending;
}

std::vector<std::int64_t> Checkpoints::numbers() const {
  std::vector<std::int64_t> all;
  for (const auto& path : files_in(folder_)) {
    const std::string name = path.stem();
    std::int64_t number = 0;
    if (path.extension() != kRecord || !name.starts_with(kPrefix)) continue;
    const char *begin = name.data() + std::strlen(kPrefix), *end = name.data() + name.size();
    if (const auto read = std::from_chars(begin, end, number); read.ec == std::errc() && read.ptr == end) {
      all.push_back(number);
    }
  }
  std::ranges::sort(all);
  return all;
}

void Checkpoints::lay_out(const HostState& state, std::string& file) {
  NamedTensors tensors = state.tensors;
  tensors.emplace_back(kDescription, tensor_of(state.description));
  lay_out_safetensors("a checkpoint of a parameter server", tensors, file);
}

void Checkpoints::write(const std::string& file) {
  const std::string values = path_of(next_, kValues), temporary = values + kTemporary;
  std::error_code ignored;
  try {
    FileRecord record = write_synced(temporary, file);
    std::error_code error;
    fs::rename(temporary, values, error);
    if (error) throw DataError(values + ": " + error.message());
    sync_folder(folder_);
    write_atomically(path_of(next_, kRecord),
                     nlohmann::json{{"bytes", record.bytes}, {"crc32c", record.crc}}.dump() + "\n");
  } catch (const DataError&) {
    fs::remove(temporary, ignored);
    fs::remove(values, ignored);
    throw;
  }
  ++next_;
  auto all = numbers();
  for (std::size_t i = 0; i + kKept < all.size(); ++i) {
    fs::remove(path_of(all[i], kRecord), ignored);
    fs::remove(path_of(all[i], kValues), ignored);
  }
}

HostState Checkpoints::read(std::int64_t number) const {
  const std::string record_path = path_of(number, kRecord);
  const auto record = parse_json(read_file(record_path), record_path);
  const std::string path = path_of(number, kValues);
  check_file(folder_, {.name = fs::path(path).filename(),
                       .bytes = record.get<std::uint64_t>("bytes"),
                       .crc = record.get<std::uint32_t>("crc32c")});
  HostState state{.tensors = load_safetensors(path)};
  const auto description = std::ranges::find(state.tensors, kDescription, &NamedTensors::value_type::first);
  if (description == state.tensors.end()) throw DataError(path + ": is not a checkpoint of a parameter server");
  const at::Tensor& text = description->second;
  state.description.assign(static_cast<const char*>(text.const_data_ptr()), text.nbytes());
  state.tensors.erase(description);
  return state;
}

std::optional<HostState> Checkpoints::newest(const std::function<void(const std::string& why)>& refuse) {
  auto all = numbers();
  std::ranges::reverse(all);
  for (const auto number : all) {
    try {
      return read(number);
    } catch (const std::exception& error) {
      refuse(path_of(number, kValues) + " cannot be used: " + error.what());
    }
  }
  return {};
}

}  // namespace phalanx::ps
