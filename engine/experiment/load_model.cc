#include "engine/experiment/load_model.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <map>
#include <vector>

#include "engine/experiment/replica.h"
#include "framework/base/error.h"
#include "framework/base/storage/weights_file.h"
#include "framework/base/text.h"

namespace phalanx {
namespace {

void copy_weights(Model& model, const std::string& path) {
  const at::NoGradGuard no_grad;
  const auto saved = load_weights(path);
  std::map<std::string, at::Tensor> by_name(saved.begin(), saved.end());
  std::vector<std::string> problems;
  NamedTensors own = model.named_parameters();
  for (auto& buffer : model.named_buffers()) own.push_back(std::move(buffer));
  for (auto& [name, tensor] : own) {
    const auto found = by_name.find(name);
    if (found == by_name.end()) {
      problems.push_back(name + " is missing");
    } else if (found->second.sizes() != tensor.sizes()) {
      problems.push_back(name + " has another shape");
    } else {
      tensor.copy_(found->second);
    }
    if (found != by_name.end()) by_name.erase(found);
  }
  for (const auto& [name, tensor] : by_name) problems.push_back(name + " is not of this model");
  if (problems.empty()) return;
  const std::size_t shown = std::min<std::size_t>(problems.size(), 5);
  const std::string more = problems.size() > shown ? " and " + std::to_string(problems.size() - shown) + " more" : "";
  problems.resize(shown);
  throw DataError(path + " does not fit the config's model: " + join(problems, ", ") + more);
}

}  // namespace

std::shared_ptr<Model> load_model(const ExperimentConfig& config, const ModelSpec& spec, const std::string& weights) {
  auto model = make_model(config, spec);
  copy_weights(*model, weights);
  return model;
}

}  // namespace phalanx
