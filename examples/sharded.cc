// SPDX-License-Identifier: Apache-2.0
// Each rank keeps the optimizer's state of its part of the parameters only, and updates only that part (ZeRO). AdamW's
// state is twice as large as the model. Two ranks: torchrun --nproc-per-node 2 --no-python sharded [FOLDER]
#include <phalanx/phalanx.h>
#include <torch/torch.h>

#include <iostream>
#include <string>

namespace nn = torch::nn;

// Trains until `last`, on samples that depend only on step and rank. Returns the last loss.
double train(nn::Sequential& model, phalanx::FusedOptimizer& optimizer, phalanx::World& world, int last) {
  torch::Tensor loss;
  while (optimizer.steps() < last) {
    torch::manual_seed(1000 * (optimizer.steps() + 1) + world.rank());
    const torch::Tensor x = torch::rand({64, 1}) * 2 - 1;
    loss = nn::functional::mse_loss(model->forward(x), torch::sin(3 * x));
    loss.backward();
    optimizer.step();  // also clips and zeroes the gradients, and gives all ranks the new parameters
  }
  return loss.item<double>();
}

int main(int argc, char** argv) {
  const std::string folder = argc > 1 ? argv[1] : ".";
  phalanx::World world = phalanx::init();
  torch::manual_seed(1);
  nn::Sequential model(nn::Linear(1, 64), nn::Tanh(), nn::Linear(64, 1));
  phalanx::DistributedDataParallel ddp(model, world, {.strategy = "sharded"});
  phalanx::FusedOptimizer optimizer(ddp, "adamw", {.keys = {{"lr", "0.01"}}, .clip_norm = 1});

  train(model, optimizer, world, 200);
  phalanx::save(model, folder + "/model.pt", world);
  phalanx::save(optimizer, folder + "/optimizer.pt", world);  // a file for each part
  const double straight = train(model, optimizer, world, 300);

  phalanx::load(model, folder + "/model.pt", world);
  phalanx::load(optimizer, folder + "/optimizer.pt", world);
  const double again = train(model, optimizer, world, 300);
  if (world.rank() == 0) {
    std::cout << "loss " << straight << "\nfrom the checkpoint " << (straight == again ? "the same" : "ANOTHER ONE")
              << std::endl;
  }
}
