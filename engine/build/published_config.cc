// SPDX-License-Identifier: Apache-2.0
#include "engine/build/published_config.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <variant>

#include "framework/base/files.h"
#include "framework/base/json.h"
#include "models/published_settings.h"

namespace phalanx {
namespace {

using Json = nlohmann::ordered_json;
using Value = PublishedSetting::Value;

constexpr const char* kScaling = "rope_scaling";

Json to_json(const Value& value) {
  return std::visit([](const auto& one) { return Json(one); }, value);
}

// Allows for numbers that were rounded to float32 before they were written.
bool equal(const Json& file, const Json& model) {
  if (!file.is_number() || !model.is_number()) return file == model;
  constexpr double kFloat32 = 1e-6;
  const auto a = file.get<double>(), b = model.get<double>();
  return std::abs(a - b) <= kFloat32 * std::max(std::abs(a), std::abs(b));
}

// Returns the element of a list of equal elements: 224 for [224, 224]. Returns any other value unchanged.
const Json& of_square(const Json& value) {
  const bool square = value.is_array() && !value.empty() &&
                      std::ranges::all_of(value, [&](const Json& one) { return one == value.front(); });
  return square ? value.front() : value;
}

bool allows(const PublishedSetting& setting, const Json& found, bool truncated) {
  const Json& value = of_square(found);
  const bool or_more = setting.or_more || (setting.of_positions && truncated);
  if (or_more && value.is_number() && value.get<double>() >= to_json(setting.values.front()).get<double>()) {
    return true;
  }
  return std::ranges::any_of(setting.values, [&](const Value& one) { return equal(value, to_json(one)); });
}

/// The values of a config.json, under the names that PublishedSetting uses.
class ConfigFile {
 public:
  ConfigFile(std::string path, const Json& all) : path_(std::move(path)) {
    for (const auto& [key, value] : all.items()) {
      if ((key == kScaling || key == "rope_parameters") && value.is_object()) {
        add_scaling(value);
      } else if (key != kScaling && key != "rope_parameters") {
        values_[key] = value;
      }
    }
    complete_scaling();
  }

  std::string describe(const std::string& key) const {
    return path_ + " has " + (key == kScaling ? key + ": " + scaling_.dump() : key + ": " + values_.at(key).dump());
  }

  const Json* find(const std::string& key) const {
    const auto found = values_.find(key);
    return found == values_.end() || (found->second.is_null() && is_scaling(key)) ? nullptr : &found->second;
  }

  const std::string& path() const { return path_; }
  const Json& scaling() const { return scaling_; }

  // Returns the names of all members of rope_scaling that have a value.
  std::vector<std::string> scaling_keys() const {
    std::vector<std::string> keys;
    for (const auto& [key, value] : values_) {
      if (is_scaling(key) && !value.is_null()) keys.push_back(key);
    }
    return keys;
  }

  static bool is_scaling(const std::string& key) { return key.starts_with(std::string(kScaling) + "."); }

 private:
  void add_scaling(const Json& members) {
    for (const auto& [key, value] : members.items()) {
      if (key == "rope_theta" || key == "partial_rotary_factor") {
        values_[key] = value;
        continue;
      }
      const std::string name = key == "type" ? "rope_type" : key;
      scaling_[name] = value;
    }
  }

  // Adds the original context length, which a file may give outside of the section, or as max_position_embeddings.
  void complete_scaling() {
    const std::string type = scaling_.contains("rope_type") && scaling_["rope_type"].is_string()
                                 ? scaling_["rope_type"].get<std::string>()
                                 : "default";
    if (type == "default") scaling_ = Json::object();
    const char* const context = "original_max_position_embeddings";
    if ((type == "llama3" || type == "yarn") && !scaling_.contains(context)) {
      const auto original = values_.find(context), whole = values_.find("max_position_embeddings");
      if (const auto found = original == values_.end() ? whole : original; found != values_.end()) {
        scaling_[context] = found->second;
      }
    }
    for (const auto& [key, value] : scaling_.items()) values_[std::string(kScaling) + "." + key] = value;
  }

  std::string path_;
  Json scaling_ = Json::object();
  std::map<std::string, Json> values_;
};

// Compares one setting. Returns the contradiction; empty if they agree.
std::string contradiction(const ConfigFile& file, const PublishedSetting& setting, bool truncated = false) {
  const Json* const found = file.find(setting.key);
  if (found == nullptr && !setting.absent) return "";
  const Json value = found == nullptr ? to_json(*setting.absent) : *found;
  if (allows(setting, value, truncated)) return "";
  const std::string absent = " lacks " + setting.key + ", which means " + value.dump();
  const std::string has = found == nullptr ? file.path() + absent : file.describe(setting.key);
  return has + ", but the model has " + to_json(setting.values.front()).dump() +
         (setting.field.empty() ? "" : "; set model." + setting.field + ": " + of_square(value).dump());
}

// Compares the members of rope_scaling as a whole, because they belong together.
std::string contradiction_of_scaling(const ConfigFile& file, const std::vector<PublishedSetting>& settings) {
  std::vector<std::string> unknown = file.scaling_keys();
  bool wrong = false;
  Json model = Json::object();
  std::string field;
  for (const auto& setting : settings) {
    if (!ConfigFile::is_scaling(setting.key)) continue;
    std::erase(unknown, setting.key);
    const std::string key = setting.key.substr(std::string(kScaling).size() + 1);
    if (const Json value = to_json(setting.values.front()); !value.is_null()) model[key] = value;
    wrong |= !contradiction(file, setting).empty();
    field = setting.field;
  }
  if (model.empty() || (!wrong && unknown.empty())) return "";
  return file.describe(kScaling) + ", but the model has " + model.dump() + "; set model." + field +
         " to the same values where its keys allow it";
}

}  // namespace

std::vector<std::string> contradictions_of_config(const std::string& weights, const Model& model, bool truncated) {
  const auto* const published = as<Published>(model);
  if (published == nullptr) return {};
  const std::filesystem::path at(weights);
  const auto path = (std::filesystem::is_directory(at) ? at : at.parent_path()) / "config.json";
  if (!std::filesystem::is_regular_file(path)) return {};
  const Json all = parse_json(read_file(path.string()), path.string()).raw();
  if (!all.is_object() || !(all.contains("model_type") || all.contains("architectures"))) return {};
  const ConfigFile file(path.string(), all);
  std::vector<std::string> found;
  for (const auto& setting : published->published_settings()) {
    if (!ConfigFile::is_scaling(setting.key)) found.push_back(contradiction(file, setting, truncated));
  }
  found.push_back(contradiction_of_scaling(file, published->published_settings()));
  std::erase(found, "");
  return found;
}

}  // namespace phalanx
