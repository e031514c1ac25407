// SPDX-License-Identifier: Apache-2.0
#include "engine/build/initial_weights.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "engine/build/published_config.h"
#include "framework/base/error.h"
#include "framework/base/text.h"
#include "models/low_rank.h"
#include "models/published_settings.h"
#include "models/trainable_parameters.h"

namespace phalanx {
namespace {

std::string shape_and_dtype(at::IntArrayRef shape, at::ScalarType dtype) {
  std::ostringstream text;
  text << c10::toString(dtype) << ' ' << shape;
  return text.str();
}

std::string some_of(const std::vector<std::string>& names, const std::string& what) {
  constexpr std::size_t kShown = 5;
  if (names.empty()) return "";
  const std::vector<std::string> shown(names.begin(), names.begin() + std::min(names.size(), kShown));
  const std::string more = names.size() > kShown ? " and " + std::to_string(names.size() - kShown) + " more" : "";
  return std::to_string(names.size()) + " " + what + " (" + join(shown, ", ") + more + ")";
}

std::string renamed(std::string name, const std::vector<std::pair<std::regex, std::string>>& rules) {
  for (const auto& [match, with] : rules) name = std::regex_replace(name, match, with);
  return name;
}

std::regex compiled(const std::string& expression, const char* key) {
  try {
    return std::regex(expression, std::regex::ECMAScript | std::regex::optimize);
  } catch (const std::regex_error& error) {
    throw ConfigError(std::string("init.") + key + ": \"" + expression +
                      "\" is not a regular expression: " + error.what());
  }
}

// Returns the rules that turn names of the file into names of the model.
std::vector<std::pair<std::regex, std::string>> rules_for(const InitConfig& init, const Model& model) {
  std::vector<std::pair<std::regex, std::string>> rules;
  for (const auto& [match, with] : init.rename) rules.emplace_back(compiled(match, "rename"), with);
  if (const auto* const published = as<Published>(model); published != nullptr) {
    for (const auto& [match, with] : published->names_of_other_versions()) rules.emplace_back(std::regex(match), with);
  }
  return rules;
}

// The parameters that may have fewer rows in the model than in the file.
class Truncation {
 public:
  Truncation(const std::string& expression, const Model& model) {
    if (expression.empty()) return;
    const std::regex match = compiled(expression, "truncate");
    for (const auto& [name, parameter] : model.named_parameters()) {
      if (std::regex_search(name, match)) names_.insert(name);
    }
    if (names_.empty()) throw ConfigError("init.truncate: \"" + expression + "\" matches no parameter of the model");
  }

  bool fits(const std::string& name, at::IntArrayRef shape, at::IntArrayRef of_file) const {
    return names_.contains(name) && !shape.empty() && shape.size() == of_file.size() && shape[0] <= of_file[0] &&
           shape.slice(1).equals(of_file.slice(1));
  }

 private:
  std::set<std::string> names_;
};

// Returns the prefix that PyTorch's wrappers, such as DistributedDataParallel and torch.compile, have put before all
// names of the file.
std::string wrappers_of(const WeightsFile& file, const Model& model) {
  const auto begins_with = [](const std::string& prefix) {
    return [prefix](const std::string& name) { return name.starts_with(prefix); };
  };
  std::vector<std::string> of_file, of_model;
  for (const auto& entry : file.entries()) of_file.push_back(entry.name);
  for (const auto& named : model.named_parameters()) of_model.push_back(named.first);
  if (of_file.empty()) return "";
  std::string prefix;
  while (true) {
    std::string longer;
    for (const char* wrapper : {"module.", "_orig_mod."}) {
      const auto wrapped = begins_with(prefix + wrapper);
      if (std::ranges::all_of(of_file, wrapped) && std::ranges::none_of(of_model, wrapped)) longer = prefix + wrapper;
    }
    if (longer.empty()) return prefix;
    prefix = longer;
  }
}

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  return a.nbytes() == b.nbytes() && std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0;
}

// Returns true if `entry` has the same bits as a matched entry. A file may have a tied weight under each of its names,
// of which the model has only one.
bool repeats_a_fitting_one(const WeightsFile& file, const WeightsFile::Entry& entry, const WeightsFit& fit) {
  if (entry.shape.empty()) return false;
  at::Tensor elements;  // read only when there is something to compare
  for (const auto& [tensor, other] : fit.fitting) {
    if (other->shape != entry.shape || other->dtype != entry.dtype) continue;
    if (!elements.defined()) elements = file.read(entry);
    if (same_bits(file.read(*other), elements)) return true;
  }
  return false;
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::count(names, name) > 0;
}

std::vector<std::string> adapters_of(const Model& model) {
  std::vector<std::string> names;
  for (const auto& [name, parameter] : model.named_parameters()) {
    if (of_adapter(name)) names.push_back(name);
  }
  return names;
}

WeightsFile opened(const std::string& path) {
  try {
    return WeightsFile(path);
  } catch (const DataError& error) {
    throw ConfigError(std::string("init.from: ") + error.what());
  }
}

// Returns a regular expression that matches all names except adapters and names in which `expression` is found.
std::string all_but(const std::string& expression) {
  const std::string adapter = "\\.lora_[AB]\\.weight$";
  return "^(?!.*(" + adapter + (expression.empty() ? "" : "|" + expression) + "))";
}

}  // namespace

std::string WeightsFit::text() const {
  std::vector<std::string> parts{some_of(missing, "missing"), some_of(unexpected, "unexpected"),
                                 some_of(different, "of another shape or type"), join(contradictions, "; ")};
  std::erase(parts, "");
  return join(parts, ", ");
}

void WeightsFit::load(const WeightsFile& file) const {
  const at::NoGradGuard no_grad;
  for (auto [tensor, entry] : fitting) {
    const at::Tensor values = file.read(*entry);
    tensor.copy_(values.sizes().equals(tensor.sizes()) ? values : values.narrow(0, 0, tensor.size(0)));
  }
}

WeightsFit fit_weights(const WeightsFile& file, const InitConfig& init, const Model& model) {
  const auto rules = rules_for(init, model);
  const Truncation truncation(init.truncate, model);
  const std::size_t wrapped = wrappers_of(file, model).size();
  std::map<std::string, const WeightsFile::Entry*> there;
  for (const auto& entry : file.entries()) {
    const std::string name = renamed(entry.name.substr(wrapped), rules);
    if (!there.emplace(name, &entry).second) {
      throw ConfigError("init.rename: two tensors of " + file.path() + " would be called " + name +
                        "; change the rules so that all names differ");
    }
  }
  WeightsFit fit;
  bool truncated = false;
  for (const auto& named : {model.named_parameters(), model.named_buffers()}) {
    for (const auto& [name, tensor] : named) {
      const auto found = there.find(name);
      if (found == there.end()) {
        fit.missing.push_back(name);
        continue;
      }
      const auto& entry = *found->second;
      const bool same_kind = at::isFloatingType(entry.dtype) == at::isFloatingType(tensor.scalar_type());
      const bool same_shape = tensor.sizes().equals(entry.shape);
      if (same_kind && (same_shape || truncation.fits(name, tensor.sizes(), entry.shape))) {
        fit.fitting.emplace_back(tensor, &entry);
        truncated |= !same_shape;
      } else {
        fit.different.push_back(name + ": " + shape_and_dtype(entry.shape, entry.dtype) + " in the file, " +
                                shape_and_dtype(tensor.sizes(), tensor.scalar_type()) + " in the model");
      }
      there.erase(found);
    }
  }
  // If there are more names, the file is of another model, and need not be read in full to report that.
  constexpr std::size_t kMaxTied = 8;
  for (const auto& [name, entry] : there) {
    if (there.size() <= kMaxTied && repeats_a_fitting_one(file, *entry, fit)) continue;
    fit.unexpected.push_back(name);
  }
  fit.contradictions = contradictions_of_config(file.path(), model, truncated);
  return fit;
}

std::string load_initial_weights(const InitConfig& init, const LoraConfig& lora, Model& model) {
  std::string left_over;
  if (!init.from.empty()) {
    const WeightsFile file = opened(init.from);
    WeightsFit fit = fit_weights(file, init, model);
    if (std::ranges::all_of(adapters_of(model), [&](const auto& name) { return contains(fit.missing, name); })) {
      std::erase_if(fit.missing, of_adapter);  // the file is of a model without adapters
    }
    left_over = fit.text();
    if (init.strict && !fit.exact()) {
      throw ConfigError("init.from: " + init.from + " does not fit the model: " + left_over +
                        "; set init.strict: false to load what fits, init.rename where names differ, or init.truncate "
                        "to take only the first positions of a longer context");
    }
    if (fit.fitting.empty()) {
      throw ConfigError("init.from: nothing in " + init.from + " fits the model: " + left_over +
                        "; set init.rename where names differ");
    }
    fit.load(file);
  }
  if (lora.any()) freeze(model, all_but(lora.also_train), "lora.also_train");
  if (!init.freeze.empty()) freeze(model, init.freeze, "init.freeze");
  return left_over;
}

}  // namespace phalanx
