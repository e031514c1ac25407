// SPDX-License-Identifier: Apache-2.0
#include "engine/build/load_model.h"

#include <ATen/core/grad_mode.h>

#include <filesystem>

#include "engine/build/initial_weights.h"
#include "engine/build/make_model.h"
#include "engine/watch/run_folder.h"
#include "framework/base/error.h"
#include "framework/base/storage/weights_file.h"
#include "models/embedding/served_rows.h"

namespace phalanx {

std::shared_ptr<Model> load_model(const ExperimentConfig& config, const ModelSpec& spec, const std::string& weights) {
  auto model = make_model(config, spec);
  const WeightsFile file(weights);
  const auto fit = fit_weights(file, {}, *model);
  if (!fit.exact()) throw DataError(weights + " does not fit the config's model: " + fit.text());
  fit.load(file);
  read_embedding_rows(weights, *model);
  return model;
}

std::string embedding_rows_path(const std::string& weights) {
  const std::filesystem::path path(weights);
  if (std::filesystem::is_directory(path)) return RunFolder(path).embeddings();
  return RunFolder(path.has_parent_path() ? path.parent_path() : ".").embeddings();
}

void read_embedding_rows(const std::string& weights, Model& model) {
  auto* const rows = served_rows_of(model);
  if (rows == nullptr) return;
  try {
    rows->read_from(embedding_rows_path(weights));
  } catch (const DataError& error) {
    throw DataError(std::string(error.what()) +
                    "; the model has embeddings on parameter servers, whose rows a run saves next to its weights, in"
                    " embeddings.safetensors");
  }
}

}  // namespace phalanx
