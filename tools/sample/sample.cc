// SPDX-License-Identifier: Apache-2.0
// Draws samples that a trained model generates from noise: sample runs/NAME --out samples.png
#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

#include "datasets/dataset.h"
#include "datasets/images/encode.h"
#include "engine/build/load_model.h"
#include "engine/experiment/experiment.h"
#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/kernels/kernels.h"
#include "launch/exit_status.h"
#include "launch/program.h"
#include "models/generative.h"
#include "models/model.h"
#include "tools/command/command.h"
#include "tools/command/flags.h"
#include "tools/config/load_checked.h"
#include "tools/config/saved_run.h"
#include "tools/config/use_cpu.h"

namespace phalanx {
namespace {

struct Options {
  SavedRunFlags saved{};
  std::string out = "samples.png";
  std::int64_t samples = 64;
  std::int64_t columns = 8;
  std::int64_t zoom = 2;
  std::uint64_t seed = 1;
};

Options parse(const Arguments& arguments) {
  Options options;
  Flags flags(arguments, {"runs/NAME --out samples.png"});
  options.saved.add_to(flags);
  flags.add("out", &options.out, "PNG file to write");
  flags.add("samples", &options.samples, "number of samples to draw");
  flags.add("columns", &options.columns, "samples in a row of the picture");
  flags.add("zoom", &options.zoom, "width and height in the picture of each pixel of a sample");
  flags.add("seed", &options.seed, "seed of the noise");
  auto others = flags.parse(arguments.words);
  take_positional(others, options.saved.run);
  refuse(others);
  for (const auto& [flag, value] : {std::pair("samples", options.samples), std::pair("columns", options.columns),
                                    std::pair("zoom", options.zoom)}) {
    if (value < 1 || value > 10000) throw ConfigError("--" + std::string(flag) + ": must be from 1 to 10000");
  }
  return options;
}

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
at::Tensor sheet(const at::Tensor& images, const Options& options) {
  const auto count = images.size(0), height = images.size(2), width = images.size(3);
  const auto columns = std::min(options.columns, count), rows = (count + columns - 1) / columns;
  at::Tensor picture =
      at::full({images.size(1), rows * (height + kGap) - kGap, columns * (width + kGap) - kGap}, 255, at::kByte);
  for (std::int64_t i = 0; i < count; ++i) {
    const auto top = i / columns * (height + kGap), left = i % columns * (width + kGap);
    picture.narrow(1, top, height).narrow(2, left, width).copy_((images[i] * 255).round().to(at::kByte));
  }
  return picture.repeat_interleave(options.zoom, 1).repeat_interleave(options.zoom, 2).contiguous();
}

void draw(const ExperimentConfig& config, const std::string& weights, const Options& options) {
  const Splits splits = config.dataset.make();
  const auto task = config.task.make(splits.test->spec(), config.loss.make());
  const ModelSpec& spec = task->model();
  const auto model = load_model(config, spec, weights);
  auto* const generative = as<Generative>(*model);
  if (generative == nullptr) {
    throw ConfigError("model " + config.model.selected() +
                      " does not generate samples, as these do: " + models_with(&ModelTraits::generative));
  }
  const auto& shape = spec.inputs.at(0).shape;
  if (shape.size() != 3 || (shape[0] != 1 && shape[0] != 3)) {
    throw ConfigError("dataset: samples are not images with 1 or 3 channels, and a picture can show nothing else");
  }
  const at::NoGradGuard no_grad;
  model->eval();
  at::manual_seed(options.seed);
  const auto [low, high] = range_of(*splits.test);
  const at::Tensor made = generative->samples(at::randn({options.samples, spec.inputs.at(1).shape.at(0)}));
  write_atomically(options.out, encode_png(sheet(((made - low) / (high - low)).clamp(0, 1), options)));
  std::printf("%lld samples in %s\n", static_cast<long long>(options.samples), options.out.c_str());
}

int run(const Arguments& arguments) {
  Options options = parse(arguments);
  const SavedRun saved = find_saved_run(arguments.name, options.saved);
  use_cpu(options.saved.overrides);
  ExperimentConfig config;
  load_checked(config, {saved.config, options.saved.overrides});
  kernels::use_kernels(config.kernels);
  draw(config, saved.weights, options);
  return kDone;
}

const bool sample_registered =
    register_command({"sample", "draws samples that a trained model generates from noise", CommandGroup::kModels, run});

}  // namespace
}  // namespace phalanx
