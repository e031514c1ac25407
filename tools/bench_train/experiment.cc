// SPDX-License-Identifier: Apache-2.0
#include <sstream>
#include <string>
#include <string_view>

#include "engine/config/check.h"
#include "framework/base/config/config.h"
#include "tools/bench_train/system.h"

namespace phalanx::bench_train {
namespace {

constexpr std::string_view kRanks = "@ranks";

// Returns the config without a dataset: the samples are passed to run_experiment() directly.
std::string yaml(const Workload& workload, const System& system, int ranks) {
  const int together = system.alone ? 1 : ranks;
  std::ostringstream text;
  text << "name: " << workload.name << "\n"
       << "launch: {ranks: " << together << ", threads: 1}\n"
       << "model: " << (system.own_model ? workload.own_model : workload.model) << "\n"
       << "optimizer: {name: sgd, lr: " << workload.learning_rate << ", momentum: 0.9}\n"
       << "train: {global_batch_size: " << workload.batch * together << ", epochs: 1000000000}\n"
       << "evaluate: {every_epochs: 0}\n"
       << "checkpoint: {final_weights: false, keep_last: 1}\n"
       << "watch: {progress: false}\n";
  return text.str();
}

}  // namespace

ExperimentConfig make_config(const Workload& workload, const System& system, int ranks) {
  ExperimentConfig config;
  auto options = system.options;
  for (auto& option : options) {
    if (const auto at = option.find(kRanks); at != std::string::npos) {
      option.replace(at, kRanks.size(), std::to_string(ranks));
    }
  }
  config::load_text(config, yaml(workload, system, ranks), system.name, options);
  check(config);
  return config;
}

}  // namespace phalanx::bench_train
