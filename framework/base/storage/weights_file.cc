#include "framework/base/storage/weights_file.h"

#include <ATen/core/Dict.h>
#include <ATen/core/ivalue.h>
#include <torch/csrc/jit/serialization/pickle.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/base/storage/safetensors.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSafetensors = ".safetensors", kIndex = ".safetensors.index.json";

bool is_state_dict(const std::string& path) {
  return std::ranges::any_of(std::array{".pt", ".pth", ".bin"}, [&](const char* end) { return path.ends_with(end); });
}

[[noreturn]] void refuse_name(const std::string& path) {
  throw DataError(path +
                  ": is no file of weights by its name; known: *.safetensors, *.safetensors.index.json, *.pt, "
                  "*.pth and *.bin");
}

NamedTensors load_parts(const std::string& path) {
  std::vector<std::pair<std::string, std::string>> places;
  try {
    const auto index = nlohmann::ordered_json::parse(read_file(path));
    for (const auto& [name, part] : index.at("weight_map").items()) places.emplace_back(name, part.get<std::string>());
  } catch (const nlohmann::json::exception& error) {
    throw DataError(path + ": is no index of safetensors files: " + error.what());
  }
  std::map<std::string, std::map<std::string, at::Tensor>> parts;
  NamedTensors tensors;
  for (const auto& [name, part] : places) {
    if (part.find('/') != std::string::npos) throw DataError(path + ": the part \"" + part + "\" is not beside it");
    auto& of_part = parts[part];
    if (of_part.empty()) {
      for (auto& [key, tensor] : load_safetensors((fs::path(path).parent_path() / part).string())) {
        of_part.emplace(key, std::move(tensor));
      }
    }
    const auto found = of_part.find(name);
    if (found == of_part.end()) throw DataError(path + ": " + name + " is not in " + part);
    tensors.emplace_back(name, found->second);
  }
  return tensors;
}

// The dictionary of tensors in what was read; null: there is none.
const c10::IValue* state_dict_in(const c10::IValue& value) {
  if (!value.isGenericDict()) return nullptr;
  const auto dict = value.toGenericDict();
  for (const auto& entry : dict) {
    if (entry.value().isTensor()) return &value;
  }
  return nullptr;
}

NamedTensors tensors_of(const std::string& path, const c10::IValue& value) {
  const c10::IValue* found = state_dict_in(value);
  c10::IValue inner;
  if (found == nullptr && value.isGenericDict()) {
    const auto dict = value.toGenericDict();
    for (const char* key : {"state_dict", "model"}) {
      if (found != nullptr || !dict.contains(key)) continue;
      inner = dict.at(key);
      found = state_dict_in(inner);
    }
  }
  if (found == nullptr) {
    throw DataError(path + ": has no state dict: save model.state_dict(), alone or as \"state_dict\" or \"model\"");
  }
  NamedTensors tensors;
  for (const auto& entry : found->toGenericDict()) {
    if (!entry.key().isString()) throw DataError(path + ": has a tensor whose name is no text");
    if (!entry.value().isTensor()) continue;  // such as the number of a version
    tensors.emplace_back(entry.key().toStringRef(), entry.value().toTensor().contiguous());
  }
  return tensors;
}

NamedTensors load_state_dict(const std::string& path) {
  const std::string bytes = read_file(path);
  if (!bytes.starts_with("PK")) {
    throw DataError(path +
                    ": is no zip archive, as torch.save() writes since PyTorch 1.6; in Python, "
                    "torch.save(torch.load(FILE, weights_only=True), FILE) converts an older one");
  }
  try {
    return tensors_of(path, torch::jit::pickle_load({bytes.begin(), bytes.end()}));
  } catch (const c10::Error& error) {
    throw DataError(path + ": cannot be read as data alone: " + error.what_without_backtrace());
  }
}

}  // namespace

NamedTensors load_weights_file(const std::string& path) {
  if (path.ends_with(kIndex)) return load_parts(path);
  if (path.ends_with(kSafetensors)) return load_safetensors(path);
  if (is_state_dict(path)) return load_state_dict(path);
  refuse_name(path);
}

void save_weights_file(const std::string& path, const NamedTensors& tensors) {
  if (path.ends_with(kSafetensors)) return save_safetensors(path, tensors);
  if (!is_state_dict(path)) refuse_name(path);
  c10::Dict<std::string, at::Tensor> dict;
  for (const auto& [name, tensor] : tensors) dict.insert(name, tensor.detach());
  const auto bytes = torch::jit::pickle_save(dict);
  write_atomically(path, std::string(bytes.begin(), bytes.end()));
}

}  // namespace phalanx
