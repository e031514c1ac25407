// SPDX-License-Identifier: Apache-2.0
#include "tests/equivalence/training.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/concat.h>
#include <ATen/ops/full.h>

#include <cstdlib>
#include <filesystem>
#include <utility>

#include "engine/run_folder.h"
#include "framework/base/config/config.h"
#include "launch/job/device.h"
#include "models/model.h"

namespace phalanx::testing {
namespace {

constexpr const char* kConfig = R"(
name: equivalence
model: mlp
dataset: {name: digits, train_samples: 500, test_samples: 130}
optimizer: {name: sgd, lr: 0.01, momentum: 0.9, weight_decay: 0.001}
schedule: cosine
framework: {bucket_bytes: 64KB}
train: {global_batch_size: 77, epochs: 6, max_steps: 40}
evaluate: {every_epochs: 0, global_batch_size: 64}
watch: {progress: false, report: false}
)";

std::string scratch(const std::string& name) {
  const char* base = std::getenv("TEST_TMPDIR");
  return std::string(base != nullptr ? base : "/tmp") + "/" + name;
}

}  // namespace

ExperimentConfig training_config(const std::vector<std::string>& changes) {
  ExperimentConfig config;
  config::load_text(config, kConfig, "equivalence", changes);
  return config;
}

Trained train(const ExperimentConfig& config, const CommunicatorPtr& world, const std::string& run,
              std::function<bool()> stop_asked) {
  return train(config, world, run, [&](ExperimentContext& context) { context.stop_asked = std::move(stop_asked); });
}

Trained train(const ExperimentConfig& config, const CommunicatorPtr& world, const std::string& run,
              const std::function<void(ExperimentContext&)>& prepare) {
  at::set_num_threads(1);
  const std::string path = scratch(run);
  if (world->rank() == 0 && config.checkpoint.resume == "none") {
    std::filesystem::remove_all(path);
    RunFolder::create(path);
  }
  world->barrier().wait();
  const RunFolder folder(path);
  const DeviceAssignment assignment = config.device == "auto" ? DeviceAssignment{world} : choose_devices(config, world);
  ExperimentContext context{
      .world = assignment.world, .device = assignment.device, .splits = config.dataset.make(), .folder = folder};
  prepare(context);
  const auto result = run_experiment(config, context);
  std::vector<at::Tensor> flat;
  for (const auto& parameter : result.model->parameters()) flat.push_back(parameter.detach().flatten().to(at::kCPU));
  return {at::concat(flat), result.test, path, result.bucket_bytes, result.metrics, result.update};
}

Trained train_on_first(const ExperimentConfig& config, const CommunicatorPtr& world, const std::string& run,
                       const Trained& like) {
  const auto alone = world->split(world->rank(), 0);
  Trained trained{.weights = like.weights.clone(), .test = like.test, .folder = scratch(run)};
  if (world->rank() == 0) trained = train(config, alone, run);
  world->broadcast(trained.weights, 0).wait();
  for (auto& [name, value] : trained.test) {
    const at::Tensor shared = at::full({1}, value, at::kDouble);
    world->broadcast(shared, 0).wait();
    value = shared.item<double>();
  }
  return trained;
}

double relative_difference(const at::Tensor& a, const at::Tensor& b) {
  return ((a - b).norm() / b.norm()).item<double>();
}

}  // namespace phalanx::testing
