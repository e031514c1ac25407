// SPDX-License-Identifier: Apache-2.0
#include "tools/weights/commands.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/isnan.h>

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "engine/build/initial_weights.h"
#include "engine/build/load_model.h"
#include "engine/build/make_model.h"
#include "engine/config/experiment_config.h"
#include "framework/base/config/config.h"
#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/base/printable.h"
#include "framework/base/storage/weights_file.h"
#include "framework/base/text.h"
#include "models/embedding/wanted_servers.h"
#include "models/low_rank.h"

namespace phalanx {
namespace {

using Json = nlohmann::ordered_json;
using Entry = WeightsFile::Entry;

void write_json(const std::string& file, const Json& json) {
  if (!file.empty()) write_atomically(file, json.dump(2) + "\n");
}

std::string text_of(at::IntArrayRef shape) {
  std::ostringstream text;
  text << shape;
  return text.str();
}

const std::map<std::string, at::ScalarType>& dtypes() {
  static const std::map<std::string, at::ScalarType> all{
      {"float32", at::kFloat}, {"float16", at::kHalf}, {"bfloat16", at::kBFloat16}, {"float64", at::kDouble}};
  return all;
}

// Returns the largest difference of two tensors of equal shape; infinity if an element of only one of them is NaN.
double difference(const at::Tensor& a, const at::Tensor& b) {
  if (a.numel() == 0) return 0;
  const at::Tensor x = a.to(at::kDouble), y = b.to(at::kDouble);
  if (at::isnan(x).ne(at::isnan(y)).any().item<bool>()) return std::numeric_limits<double>::infinity();
  const at::Tensor distance = (x - y).abs().nan_to_num(0.0, std::numeric_limits<double>::infinity());
  return distance.masked_fill(x.eq(y), 0).max().item<double>();  // the difference of equal infinities is 0
}

// For a model whose embeddings are on parameter servers: returns true if the rows next to the weights fit the model, or
// if there are no rows, as for initial weights.
bool rows_fit(const std::string& weights, const ExperimentConfig& config, Model& model) {
  if (!wants_servers(config.model)) return true;
  const std::string rows = embedding_rows_path(weights);
  if (!std::filesystem::exists(rows)) {
    print_text("%s does not exist: training can start from the weights, but evaluation needs the rows\n", rows.c_str());
    return true;
  }
  try {
    read_embedding_rows(weights, model);
  } catch (const DataError& error) {
    print_text("%s\n", error.what());
    return false;
  }
  print_text("the rows in %s fit too\n", rows.c_str());
  return true;
}

// JSON has no infinity.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json("infinity"); }

}  // namespace

void list_weights(const std::string& file, const std::string& json) {
  const WeightsFile weights(file);
  Json tensors = Json::array();
  std::int64_t bytes = 0, elements = 0;
  std::size_t width = 0;
  for (const auto& entry : weights.entries()) width = std::max(width, entry.name.size());
  for (const auto& entry : weights.entries()) {
    bytes += entry.bytes();
    elements += entry.bytes() / static_cast<std::int64_t>(c10::elementSize(entry.dtype));
    print_text("%-*s  %-8s  %-20s  %s\n", static_cast<int>(width), entry.name.c_str(), c10::toString(entry.dtype),
               text_of(entry.shape).c_str(), format_bytes(entry.bytes()).c_str());
    tensors.push_back({{"name", entry.name},
                       {"dtype", c10::toString(entry.dtype)},
                       {"shape", entry.shape},
                       {"bytes", entry.bytes()}});
  }
  print_text("%zu tensors of %" PRId64 " elements, %s, in %zu file%s\n", weights.entries().size(), elements,
             format_bytes(bytes).c_str(), weights.files(), weights.files() == 1 ? "" : "s");
  write_json(json, {{"file", file}, {"elements", elements}, {"bytes", bytes}, {"tensors", tensors}});
}

void convert_weights(const std::string& from, const std::string& to, std::int64_t shard_bytes, const std::string& dtype,
                     const std::string& json) {
  const auto wanted = dtypes().find(dtype);
  if (!dtype.empty() && wanted == dtypes().end()) {
    throw ConfigError("--dtype: \"" + dtype + "\" is not one of float32, float16, bfloat16 and float64");
  }
  NamedTensors tensors = load_weights(from);
  for (auto& [name, tensor] : tensors) {
    if (wanted != dtypes().end() && tensor.is_floating_point()) tensor = tensor.to(wanted->second);
  }
  const auto written = save_weights(to, tensors, shard_bytes);
  for (const auto& file : written) print_text("%s\n", file.c_str());
  print_text("%zu tensors\n", tensors.size());
  write_json(json, {{"from", from}, {"tensors", tensors.size()}, {"files", written}});
}

bool compare_weights(const std::string& a, const std::string& b, const std::string& json) {
  const WeightsFile first(a), second(b);
  std::map<std::string, const Entry*> others;
  for (const auto& entry : second.entries()) others[entry.name] = &entry;
  Json only_first = Json::array(), only_second = Json::array(), shapes = Json::array(), values = Json::array();
  std::size_t equal = 0;
  double largest = 0;
  for (const auto& entry : first.entries()) {
    const auto found = others.find(entry.name);
    if (found == others.end()) {
      print_text("only in %s: %s\n", a.c_str(), entry.name.c_str());
      only_first.push_back(entry.name);
      continue;
    }
    const Entry& other = *found->second;
    others.erase(found);
    if (entry.shape != other.shape) {
      print_text("%s: shape %s and %s\n", entry.name.c_str(), text_of(entry.shape).c_str(),
                 text_of(other.shape).c_str());
      shapes.push_back({{"name", entry.name}, {"shapes", {entry.shape, other.shape}}});
      continue;
    }
    const double distance = difference(first.read(entry), second.read(other));
    largest = std::max(largest, distance);
    equal += distance == 0 ? 1 : 0;
    if (distance == 0 && entry.dtype == other.dtype) continue;
    print_text("%s: max abs difference %g, dtypes %s and %s\n", entry.name.c_str(), distance,
               c10::toString(entry.dtype), c10::toString(other.dtype));
    values.push_back({{"name", entry.name},
                      {"max_abs_difference", number(distance)},
                      {"dtypes", {c10::toString(entry.dtype), c10::toString(other.dtype)}}});
  }
  for (const auto& entry : second.entries()) {
    if (!others.contains(entry.name)) continue;
    print_text("only in %s: %s\n", b.c_str(), entry.name.c_str());
    only_second.push_back(entry.name);
  }
  print_text("%zu tensors are equal; largest difference of the others: %g\n", equal, largest);
  write_json(json, {{"equal", equal},
                    {"max_abs_difference", number(largest)},
                    {"only_in_first", only_first},
                    {"only_in_second", only_second},
                    {"shapes", shapes},
                    {"values", values}});
  return equal == first.entries().size() && equal == second.entries().size();
}

void merge_adapters(const std::string& from, const std::string& to, const std::string& path,
                    const std::vector<std::string>& overrides, const std::string& json) {
  ExperimentConfig config;
  config::load(config, path, overrides);
  if (!config.lora.any()) throw ConfigError(path + ": lora.layers is empty, so there are no adapters to merge");
  const auto task = config.task.make(config.dataset.make().train->spec(), config.loss.make());
  const auto model = make_model(config, task->model());
  const WeightsFile weights(from);
  const WeightsFit fit = fit_weights(weights, {}, *model);
  if (!fit.exact()) throw DataError(from + " does not fit model and adapters of " + path + ": " + fit.text());
  fit.load(weights);
  const at::NoGradGuard no_grad;
  const NamedTensors merged = merged_weights(*model);
  save_weights(to, merged);
  print_text("%s\n%zu tensors, of %zu with adapters\n", to.c_str(), merged.size(), fit.fitting.size());
  write_json(json, {{"from", from}, {"to", to}, {"tensors", merged.size()}});
}

bool verify_weights(const std::string& file, const std::string& path, const std::vector<std::string>& overrides,
                    const std::string& json) {
  ExperimentConfig config;
  config::load(config, path, overrides);
  const auto task = config.task.make(config.dataset.make().train->spec(), config.loss.make());
  const auto model = make_model(config, task->model());
  const WeightsFile weights(file);
  const WeightsFit fit = fit_weights(weights, config.init, *model);
  print_text("%zu tensors of %s fit model %s%s\n", fit.fitting.size(), file.c_str(), config.model.selected().c_str(),
             fit.exact() ? ", and nothing is left over" : "; the rest:");
  for (const auto& name : fit.missing) print_text("missing: %s\n", name.c_str());
  for (const auto& name : fit.unexpected) print_text("unexpected: %s\n", name.c_str());
  for (const auto& name : fit.different) print_text("different: %s\n", name.c_str());
  for (const auto& text : fit.contradictions) print_text("contradicts: %s\n", text.c_str());
  const bool fits = rows_fit(file, config, *model) && fit.exact();
  write_json(json, {{"fits", fits},
                    {"fitting", fit.fitting.size()},
                    {"missing", fit.missing},
                    {"unexpected", fit.unexpected},
                    {"different", fit.different},
                    {"contradictions", fit.contradictions}});
  return fits;
}

}  // namespace phalanx
