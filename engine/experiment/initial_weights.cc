#include "engine/experiment/initial_weights.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <map>
#include <regex>

#include "framework/base/error.h"
#include "framework/base/log.h"
#include "framework/base/storage/weights_file.h"
#include "framework/base/text.h"

namespace phalanx {

std::string describe(const WeightsMismatch& mismatch) {
  std::vector<std::string> problems;
  for (const auto& name : mismatch.missing) problems.push_back(name + " is missing");
  for (const auto& name : mismatch.reshaped) problems.push_back(name + " has another shape");
  for (const auto& name : mismatch.unexpected) problems.push_back(name + " is not of this model");
  const std::size_t shown = std::min<std::size_t>(problems.size(), 5);
  const std::string more = problems.size() > shown ? " and " + std::to_string(problems.size() - shown) + " more" : "";
  problems.resize(shown);
  return join(problems, ", ") + more;
}

WeightsMismatch copy_weights(Model& model, const std::string& path) {
  const at::NoGradGuard no_grad;
  const auto saved = load_weights_file(path);
  std::map<std::string, at::Tensor> by_name(saved.begin(), saved.end());
  WeightsMismatch mismatch;
  NamedTensors own = model.named_parameters();
  for (auto& buffer : model.named_buffers()) own.push_back(std::move(buffer));
  for (auto& [name, tensor] : own) {
    const auto found = by_name.extract(name);
    if (found.empty()) {
      mismatch.missing.push_back(name);
    } else if (found.mapped().sizes() != tensor.sizes()) {
      mismatch.reshaped.push_back(name);
    } else {
      tensor.copy_(found.mapped());
    }
  }
  for (const auto& [name, tensor] : by_name) mismatch.unexpected.push_back(name);
  return mismatch;
}

void set_initial_weights(Model& model, const InitConfig& init) {
  if (!init.from.empty()) {
    const auto mismatch = copy_weights(model, init.from);
    if (mismatch.any() && init.strict) {
      throw DataError(init.from + " does not fit the model: " + describe(mismatch) +
                      "; init.strict: false takes what fits");
    }
    log_info() << "initial weights from " << init.from << (mismatch.any() ? "; " + describe(mismatch) : "");
  }
  if (init.freeze.empty()) return;
  std::size_t frozen = 0;
  try {
    const std::regex pattern(init.freeze);
    for (auto& [name, parameter] : model.named_parameters()) {
      if (!std::regex_search(name, pattern)) continue;
      parameter.requires_grad_(false);
      ++frozen;
    }
  } catch (const std::regex_error& error) {
    throw ConfigError("init.freeze: \"" + init.freeze + "\" is no regular expression: " + error.what());
  }
  const auto all = model.named_parameters();
  if (frozen == 0) {
    throw ConfigError("init.freeze: \"" + init.freeze + "\" is in the name of no parameter; they are called " +
                      all.front().first + ", " + all.back().first + " and the like");
  }
  if (frozen == all.size()) throw ConfigError("init.freeze: \"" + init.freeze + "\" leaves no parameter to train");
  log_info() << frozen << " of " << all.size() << " parameters are frozen";
}

NamedTensors parameters_where(const Model& model, bool trained) {
  NamedTensors parameters = model.named_parameters();
  std::erase_if(parameters, [trained](const auto& named) { return named.second.requires_grad() != trained; });
  return parameters;
}

}  // namespace phalanx
