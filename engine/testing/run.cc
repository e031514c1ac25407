// SPDX-License-Identifier: Apache-2.0
#include "engine/testing/run.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/concat.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "framework/base/config/config.h"
#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/base/storage/safetensors.h"
#include "framework/testing/worlds.h"
#include "models/model.h"

namespace phalanx::testing {
namespace {

constexpr const char* kTiny = R"(
name: tiny
seed: 3
model: {name: mlp, hidden: [16]}
dataset: {name: digits, train_samples: 100, test_samples: 26, side: 16}
optimizer: {name: sgd, lr: 0.05, momentum: 0.9}
framework: {bucket_bytes: 4KB}
train: {global_batch_size: 32, epochs: 3}
evaluate: {global_batch_size: 16}
watch: {every_steps: 3, progress: false}
)";

std::vector<Json> lines_of(const RunFolder& folder) {
  std::istringstream text(read_file(folder.metrics()));
  std::vector<Json> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(Json::parse(line));
  return lines;
}

}  // namespace

ExperimentConfig tiny_config(const Changes& changes) {
  ExperimentConfig config;
  config::load_text(config, kTiny, "tiny.yaml", changes);
  return config;
}

std::string complaint(const std::string& changes, const std::string& backend) {
  ExperimentConfig config;
  config::load_text(config, "{model: mlp, dataset: digits, " + changes + "}", "test.yaml");
  if (!backend.empty()) config.backend = backend;
  try {
    check(config);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

Finished run_tiny(int ranks, const RunFolder& folder, const Changes& changes, const Interference& interference) {
  const auto config = tiny_config(changes);
  const auto splits = config.dataset.make();
  const auto count = static_cast<std::size_t>(ranks);
  Finished run{folder, std::vector<ExperimentResult>(count), std::vector<at::Tensor>(count),
               std::vector<std::string>(count), std::vector<std::int64_t>(count, -1)};
  run_ranks("inproc", ranks, [&](const CommunicatorPtr& world) {
    at::set_num_threads(1);
    const int rank = world->rank();
    const auto i = static_cast<std::size_t>(rank);
    const auto add_hooks = [&, rank, i](Engine& engine) {
      engine.on(Event::kStart, [&, i](State& state) { run.began_after[i] = state.step; });
      interference.add_hooks(engine, rank);
    };
    const ExperimentContext context{.world = world,
                                    .splits = splits,
                                    .folder = folder,
                                    .stop_asked = [&, rank] { return interference.stop_asked(rank); },
                                    .add_hooks = add_hooks,
                                    .add_evaluation_hooks = interference.add_evaluation_hooks};
    try {
      run.results[i] = run_experiment(config, context);
      run.weights[i] = flat(run.results[i].model->parameters());
    } catch (const Error& error) {
      run.errors[i] = error.what();
    }
  });
  return run;
}

std::string new_path() {
  static int number = 0;
  const std::string path = ::testing::TempDir() + "/run" + std::to_string(++number);
  std::filesystem::remove_all(path);
  return path;
}

RunFolder new_folder() { return RunFolder::create(new_path()); }

std::vector<Json> metrics(const Finished& run, const std::string& split) {
  auto lines = lines_of(run.folder);
  std::erase_if(lines, [&](const Json& line) { return line.at("split") != split; });
  return lines;
}

std::vector<std::string> metrics_but_times(const RunFolder& folder) {
  std::vector<std::string> lines;
  for (auto& line : lines_of(folder)) {
    for (const char* key : {"samples_per_second", "seconds", "step_ms"}) line.erase(key);
    lines.push_back(line.dump());
  }
  return lines;
}

Json summary(const Finished& run) { return Json::parse(read_file(run.folder.summary())); }

double metric(const Metrics& metrics, const std::string& name) {
  const auto found = std::ranges::find(metrics, name, &Metrics::value_type::first);
  if (found != metrics.end()) return found->second;
  ADD_FAILURE() << "no " << name;
  return 0;
}

at::Tensor flat(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> parts;
  for (const auto& tensor : tensors) parts.push_back(tensor.detach().flatten());
  return at::concat(parts);
}

at::Tensor final_weights(const Finished& run) {
  std::vector<at::Tensor> tensors;
  for (const auto& [name, tensor] : load_safetensors(run.folder.weights())) tensors.push_back(tensor);
  return flat(tensors);
}

double relative_difference(const at::Tensor& a, const at::Tensor& b) {
  return ((a - b).norm() / b.norm()).item<double>();
}

}  // namespace phalanx::testing
