#include "engine/experiment/load_model.h"

#include "engine/experiment/initial_weights.h"
#include "engine/experiment/replica.h"
#include "framework/base/error.h"

namespace phalanx {

std::shared_ptr<Model> load_model(const ExperimentConfig& config, const ModelSpec& spec, const std::string& weights) {
  auto model = make_model(config, spec);
  const auto mismatch = copy_weights(*model, weights);
  if (mismatch.any()) throw DataError(weights + " does not fit the config's model: " + describe(mismatch));
  return model;
}

}  // namespace phalanx
