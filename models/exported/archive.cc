// Layout of the archive: torch/csrc/export/pt2_archive_constants.h of PyTorch 2.13.
#include "models/exported/archive.h"

#include <ATen/ops/empty.h>
#include <caffe2/serialize/inline_container.h>

#include <cstring>
#include <utility>
#include <vector>

#include "framework/base/error.h"

namespace phalanx::exported {
namespace {

constexpr int kSchema = 8;  // major version

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw ConfigError("model.file: " + path + ": " + why);
}

std::vector<std::int64_t> numbers(const nlohmann::json& list) {
  std::vector<std::int64_t> values;
  for (const auto& entry : list) values.push_back(entry.at("as_int").get<std::int64_t>());
  return values;
}

}  // namespace

at::ScalarType dtype_of(int serialized) {
  if (serialized >= 1 && serialized <= 12) return static_cast<at::ScalarType>(serialized - 1);
  return serialized == 13 ? at::kBFloat16 : at::ScalarType::Undefined;
}

Archive::Archive(const std::string& path) : path_(path) {
  try {
    reader_ = std::make_unique<caffe2::serialize::PyTorchStreamReader>(path);
    if (!reader_->hasRecord("archive_format") || record("archive_format") != "pt2") {
      refuse(path, "is no program of torch.export.save");
    }
  } catch (const c10::Error& error) {
    refuse(path, std::string("cannot be read as a program of torch.export.save: ") + error.what_without_backtrace());
  }
  if (record("archive_version") != "0") refuse(path, "has archive version " + record("archive_version") + ", not 0");
  if (record("byteorder") != "little") refuse(path, "is not of little-endian byte order");
}

Archive::~Archive() = default;

std::string Archive::record(const std::string& name) const {
  try {
    const auto [data, size] = reader_->getRecord(name);
    return {static_cast<const char*>(data.get()), size};
  } catch (const c10::Error& error) {
    refuse(path_, "cannot read " + name + ": " + error.what_without_backtrace());
  }
}

nlohmann::json Archive::parsed(const std::string& name) const {
  try {
    return nlohmann::json::parse(record(name));
  } catch (const nlohmann::json::exception& error) {
    refuse(path_, name + ": " + error.what());
  }
}

nlohmann::json Archive::program() const {
  auto program = parsed("models/model.json");
  const int major = program.value("schema_version", nlohmann::json::object()).value("major", 0);
  if (major != kSchema) {
    refuse(path_, "has schema version " + std::to_string(major) + ", not " + std::to_string(kSchema) +
                      ": export it again with torch 2.13");
  }
  return program;
}

std::map<std::string, at::Tensor> Archive::tensors(const std::string& kind) const {
  const std::string folder = "data/" + kind + "/";
  std::map<std::string, at::Tensor> all, records;
  std::map<std::pair<std::string, std::string>, at::Tensor> views;  // by record and layout
  const auto config = parsed(folder + "model_" + kind + "_config.json");
  for (const auto& [name, entry] : config.at("config").items()) {
    if (entry.at("use_pickle").get<bool>()) refuse(path_, name + " is pickled, which only Python can read");
    const auto& meta = entry.at("tensor_meta");
    const auto dtype = dtype_of(meta.at("dtype").get<int>());
    if (dtype == at::ScalarType::Undefined) refuse(path_, name + " has a dtype that is not supported");
    const auto record_name = folder + entry.at("path_name").get<std::string>();
    auto& view = views[{record_name, meta.dump()}];
    if (!view.defined()) {
      auto& memory = records[record_name];
      if (!memory.defined()) {
        const auto bytes = record(record_name);
        memory = at::empty({static_cast<std::int64_t>(bytes.size())}, at::kByte);
        if (!bytes.empty()) std::memcpy(memory.mutable_data_ptr(), bytes.data(), bytes.size());
      }
      const auto sizes = numbers(meta.at("sizes")), strides = numbers(meta.at("strides"));
      const auto offset = meta.at("storage_offset").at("as_int").get<std::int64_t>();
      std::int64_t needed = offset + 1;
      for (std::size_t i = 0; i < sizes.size(); ++i) needed += (sizes[i] - 1) * strides.at(i);
      if (needed * static_cast<std::int64_t>(at::elementSize(dtype)) > memory.numel()) {
        refuse(path_, name + " has more elements than " + record_name);
      }
      view = at::empty({0}, dtype);
      view.set_(memory.storage(), offset, sizes, strides);
      if (entry.at("is_param").get<bool>())
        view = view.contiguous().set_requires_grad(meta.at("requires_grad").get<bool>());
    }
    all.emplace(name, view);
  }
  return all;
}

}  // namespace phalanx::exported
