// SPDX-License-Identifier: Apache-2.0
// A program that knows only the installed library. `ranks BACKEND` starts two ranks, or is one of those that a launcher
// has started; each prints the mean of the ranks' gradients.
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <phalanx/phalanx.h>
#include <torch/nn/modules/linear.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

void train(phalanx::World& world) {
  torch::nn::Linear model(2, 1);
  phalanx::DistributedDataParallel ddp(model, world);
  (model->forward(at::ones({1, 2})).sum() * (world.rank() + 1)).backward();
  std::printf("rank %d of %d: gradient %.2f\n", world.rank(), world.size(), model->weight.grad()[0][0].item<double>());
}

}  // namespace

int main(int argc, char** argv) {
  const std::string backend = argc > 1 ? argv[1] : "auto";
  try {
    if (std::getenv("RANK") != nullptr || std::getenv("OMPI_COMM_WORLD_RANK") != nullptr) {
      auto world = phalanx::init({.backend = backend});
      train(world);
    } else {
      phalanx::launch(2, train, {.backend = backend});
    }
  } catch (const phalanx::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
