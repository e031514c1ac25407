// SPDX-License-Identifier: Apache-2.0
// Draws samples that a trained model generates from noise: sample --run runs/NAME --out samples.png
#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <gflags/gflags.h>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

#include "datasets/dataset.h"
#include "datasets/images/encode.h"
#include "engine/experiment/experiment.h"
#include "engine/experiment/load_model.h"
#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/kernels/kernels.h"
#include "launch/exit_status.h"
#include "launch/program.h"
#include "models/generative.h"
#include "tools/flags/load_checked.h"
#include "tools/flags/on_the_cpu.h"
#include "tools/flags/parse_flags.h"
#include "tools/flags/saved_run.h"
#include "tools/flags/take_overrides.h"

DEFINE_string(run, "", "run folder whose config.yaml and weights.safetensors to use");
DEFINE_string(weights, "", "safetensors file, in place of the run's");
DEFINE_string(config, "", "YAML file of a run with these weights, in place of the run's");
DEFINE_string(set, "", "key.path=value, overrides the config file; may be repeated");
DEFINE_string(out, "samples.png", "PNG file to write");
DEFINE_int64(samples, 64, "number of samples to draw");
DEFINE_int64(columns, 8, "samples in a row of the picture");
DEFINE_int64(zoom, 2, "width and height in the picture of each pixel of a sample");
DEFINE_uint64(seed, 1, "seed of the noise");

namespace phalanx {
namespace {

constexpr std::int64_t kGap = 2;  // pixels between samples

// Returns the smallest and the largest value in some samples of the dataset, which become black and white.
std::pair<double, double> range_of(const Dataset& dataset) {
  std::vector<std::int64_t> indices(static_cast<std::size_t>(std::min<std::int64_t>(dataset.size(), 64)));
  std::iota(indices.begin(), indices.end(), 0);
  Batch batch;
  dataset.gather(indices, /*seed=*/0, batch);
  const auto low = batch.inputs.at(0).min().item<double>(), high = batch.inputs.at(0).max().item<double>();
  return {low, std::max(high, low + 1e-6)};
}

// Arranges images [n, c, h, w] with values from 0 to 1 row by row. Returns uint8 [c, height, width].
at::Tensor sheet(const at::Tensor& images) {
  const auto count = images.size(0), height = images.size(2), width = images.size(3);
  const auto columns = std::min(FLAGS_columns, count), rows = (count + columns - 1) / columns;
  at::Tensor picture =
      at::full({images.size(1), rows * (height + kGap) - kGap, columns * (width + kGap) - kGap}, 255, at::kByte);
  for (std::int64_t i = 0; i < count; ++i) {
    const auto top = i / columns * (height + kGap), left = i % columns * (width + kGap);
    picture.narrow(1, top, height).narrow(2, left, width).copy_((images[i] * 255).round().to(at::kByte));
  }
  return picture.repeat_interleave(FLAGS_zoom, 1).repeat_interleave(FLAGS_zoom, 2).contiguous();
}

void draw(const ExperimentConfig& config, const std::string& weights) {
  const Splits splits = config.dataset.make();
  const auto task = config.task.make(splits.test->spec(), config.loss.make());
  const ModelSpec& spec = task->model();
  const auto model = load_model(config, spec, weights);
  auto* const generative = dynamic_cast<Generative*>(model.get());
  if (generative == nullptr) {
    throw ConfigError("model " + config.model.selected() + " does not generate samples; vae and dcgan do");
  }
  const auto& shape = spec.inputs.at(0).shape;
  if (shape.size() != 3 || (shape[0] != 1 && shape[0] != 3)) {
    throw ConfigError("dataset: samples are not images with 1 or 3 channels, and a picture can show nothing else");
  }
  const at::NoGradGuard no_grad;
  model->eval();
  at::manual_seed(FLAGS_seed);
  const auto [low, high] = range_of(*splits.test);
  const at::Tensor made = generative->samples(at::randn({FLAGS_samples, spec.inputs.at(1).shape.at(0)}));
  write_atomically(FLAGS_out, encode_png(sheet(((made - low) / (high - low)).clamp(0, 1))));
  std::printf("%lld samples in %s\n", static_cast<long long>(FLAGS_samples), FLAGS_out.c_str());
}

int run(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  auto overrides = take_overrides(words);
  refuse(parse_flags({.purpose = "draws samples that a trained model generates from noise\n\n"
                                 "  sample --run runs/NAME --out samples.png",
                      .files = "tools/sample/"},
                     words));
  for (const auto& [flag, value] :
       {std::pair("samples", FLAGS_samples), std::pair("columns", FLAGS_columns), std::pair("zoom", FLAGS_zoom)}) {
    if (value < 1 || value > 10000) throw ConfigError("--" + std::string(flag) + ": must be from 1 to 10000");
  }
  const SavedRun saved = find_saved_run("sample", FLAGS_run, FLAGS_weights, FLAGS_config, overrides);
  stay_on_the_cpu(overrides);
  ExperimentConfig config;
  load_checked(config, {saved.config, overrides});
  kernels::use_kernels(config.kernels);
  draw(config, saved.weights);
  return kDone;
}

}  // namespace
}  // namespace phalanx

int main(int argc, char** argv) {
  return phalanx::run_main([&] { return phalanx::run(argc, argv); });
}
