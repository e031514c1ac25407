#include "engine/experiment/load_model.h"

#include <ATen/core/grad_mode.h>

#include "engine/experiment/initial_weights.h"
#include "engine/experiment/replica.h"
#include "framework/base/error.h"
#include "framework/base/storage/weights_file.h"

namespace phalanx {

std::shared_ptr<Model> load_model(const ExperimentConfig& config, const ModelSpec& spec, const std::string& weights) {
  auto model = make_model(config, spec);
  const WeightsFile file(weights);
  const auto fit = fit_weights(file, {}, *model);
  if (!fit.exact()) throw DataError(weights + " does not fit the config's model: " + fit.text());
  const at::NoGradGuard no_grad;
  for (auto [tensor, entry] : fit.fitting) tensor.copy_(file.read(*entry));
  return model;
}

}  // namespace phalanx
