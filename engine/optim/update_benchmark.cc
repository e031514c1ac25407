// SPDX-License-Identifier: Apache-2.0
// Measures an update of ResNet-18's 11 M parameters, including zeroing gradients, and LibTorch's own optimizer, which
// updates the same tensors one by one. Uses one thread. Run it interleaved, since the speed of memory varies from
// minute to minute:
//   bazel run //engine/optim:update_benchmark -- --benchmark_enable_random_interleaving --benchmark_repetitions=9
#include <ATen/Parallel.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros_like.h>
#include <benchmark/benchmark.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include "engine/testing/optimizer.h"

namespace phalanx {
namespace {

using Shapes = std::vector<std::vector<std::int64_t>>;

// Returns the shapes for images of 32 x 32 and 10 classes: a convolution and its normalization, eight blocks of two
// convolutions each, and an output layer.
Shapes resnet18() {
  Shapes shapes;
  const auto convolution = [&](std::int64_t out, std::int64_t in, std::int64_t size) {
    shapes.insert(shapes.end(), {{out, in, size, size}, {out}, {out}});
  };
  convolution(64, 3, 3);
  std::int64_t in = 64;
  for (const std::int64_t out : {64, 64, 128, 128, 256, 256, 512, 512}) {
    convolution(out, in, 3);
    convolution(out, out, 3);
    if (in != out) convolution(out, in, 1);
    in = out;
  }
  shapes.insert(shapes.end(), {{10, 512}, {10}});
  return shapes;
}

// Gradients are small, so that values stay finite for many updates. Both sides start an update with nonzero gradients.
constexpr double kGradient = 1e-3;

void flat(benchmark::State& state, const char* yaml) {
  at::set_num_threads(1);
  std::int64_t elements = 0;
  for (const auto& shape : resnet18()) elements += c10::multiply_integers(shape);
  const at::Tensor values = at::randn({elements}), gradients = at::zeros_like(values);
  const auto optimizer = testing::make_optimizer(yaml);
  optimizer->attach({{values, gradients}});
  for (auto _ : state) {
    state.PauseTiming();
    gradients.fill_(kGradient);
    state.ResumeTiming();
    optimizer->update();
  }
  state.SetItemsProcessed(state.iterations() * elements);
}

template <class Reference, class Options>
void libtorch(benchmark::State& state, const Options& options) {
  at::set_num_threads(1);
  std::vector<at::Tensor> parameters;
  std::int64_t elements = 0;
  for (const auto& shape : resnet18()) {
    parameters.push_back(at::randn(shape).requires_grad_());
    parameters.back().mutable_grad() = at::zeros_like(parameters.back());
    elements += parameters.back().numel();
  }
  Reference optimizer(parameters, options);
  for (auto _ : state) {
    state.PauseTiming();
    for (const auto& parameter : parameters) parameter.grad().fill_(kGradient);
    state.ResumeTiming();
    optimizer.step();
    optimizer.zero_grad(/*set_to_none=*/false);
  }
  state.SetItemsProcessed(state.iterations() * elements);
}

void libtorch_sgd(benchmark::State& state) {
  libtorch<torch::optim::SGD>(state, torch::optim::SGDOptions(0.1).momentum(0.9));
}

void libtorch_adamw(benchmark::State& state) {
  libtorch<torch::optim::AdamW>(state, torch::optim::AdamWOptions(0.001));
}

void libtorch_rmsprop(benchmark::State& state) {
  libtorch<torch::optim::RMSprop>(state, torch::optim::RMSpropOptions(0.01));
}

BENCHMARK_CAPTURE(flat, sgd, "{name: sgd, momentum: 0.9}")->Unit(benchmark::kMillisecond);
BENCHMARK(libtorch_sgd)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(flat, adamw, "adamw")->Unit(benchmark::kMillisecond);
BENCHMARK(libtorch_adamw)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(flat, rmsprop, "rmsprop")->Unit(benchmark::kMillisecond);
BENCHMARK(libtorch_rmsprop)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(flat, adagrad, "adagrad")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(flat, lion, "lion")->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace phalanx

BENCHMARK_MAIN();
