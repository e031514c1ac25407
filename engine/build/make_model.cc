// SPDX-License-Identifier: Apache-2.0
#include "engine/build/make_model.h"

#include <ATen/Context.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "engine/build/initial_weights.h"
#include "engine/experiment/make_section.h"
#include "framework/base/console.h"
#include "framework/base/log.h"
#include "framework/base/random.h"
#include "models/low_rank.h"
#include "models/trainable_parameters.h"
#include "models/weights_layout.h"

namespace phalanx {
namespace {

// Throws ConfigError for a group that matches no parameter. It must be a typing error: the parameters that it was meant
// to match would be trained like all others.
void check_groups(const ParameterGroups& groups, const Model& model) {
  for (std::size_t i = 0; i < groups.size(); ++i) {
    refuse_unmatched(model, groups[i].match, "parameter_groups[" + std::to_string(i) + "].match");
  }
}

}  // namespace

// Holds a lock, because LibTorch draws initial values from one generator per process, and ranks may be threads.
std::shared_ptr<Model> make_model(const ExperimentConfig& config, const ModelSpec& spec) {
  static std::mutex generator;
  std::lock_guard lock(generator);
  at::manual_seed(mix(static_cast<std::uint64_t>(config.seed), 0));
  auto model = make_section("model", config.model, spec);
  const auto& lora = config.lora;
  if (lora.any()) {
    with_section(
        "adapters", [&] { return config::dump_as("lora", config.lora); },
        [&] { add_adapters(*model, {lora.layers, lora.rank, lora.alpha, lora.dropout}); });
  }
  if (config.train.precision == "fp64") weights_to_double(*model);
  if (config.train.memory_format == "channels_last") weights_to_channels_last(*model);
  return model;
}

// A run that resumes from a given checkpoint takes all values from there. With `auto` there may be no checkpoint.
std::shared_ptr<Model> make_initial_model(const ExperimentConfig& config, const ModelSpec& spec, bool verbose) {
  auto model = make_model(config, spec);
  check_groups(config.parameter_groups, *model);
  InitConfig init = config.init;
  const auto& resume = config.checkpoint.resume;
  if (resume != "none" && resume != "auto") init.from.clear();
  const std::string left_over = load_initial_weights(init, config.lora, *model);
  if (init.from.empty() || !verbose) return model;
  const std::string text =
      "Begins with the weights in " + init.from + (left_over.empty() ? "" : "; what does not fit: " + left_over);
  log_info() << text;
  if (config.watch.progress && !left_over.empty()) standard_output().write(text + "\n");
  return model;
}

std::shared_ptr<Model> make_other_model(const ExperimentConfig& config, const ModelSpec& spec, const Model& first) {
  auto model = make_model(config, spec);
  const NamedTensors frozen = frozen_parameters(first);
  const std::map<std::string, at::Tensor> by_name(frozen.begin(), frozen.end());
  for (auto& [name, parameter] : model->named_parameters()) {
    const auto found = by_name.find(name);
    if (found == by_name.end()) continue;
    parameter.set_requires_grad(false);
    parameter.set_data(found->second);
  }
  return model;
}

}  // namespace phalanx
