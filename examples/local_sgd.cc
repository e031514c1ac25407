// SPDX-License-Identifier: Apache-2.0
// Ranks train on their own and average their parameters every eight steps: an eighth of the communication, which helps
// on slow links. Two ranks: torchrun --nproc-per-node 2 --no-python local_sgd
#include <phalanx/phalanx.h>
#include <torch/torch.h>

#include <algorithm>
#include <iostream>

namespace nn = torch::nn;

// Returns the difference between the largest and the smallest value that a rank has for any parameter.
double largest_difference(nn::Sequential& model, phalanx::World& world) {
  double largest = 0;
  for (const torch::Tensor& parameter : model->parameters()) {
    torch::Tensor most = parameter.detach().clone(), least = most.clone();
    world.communicator().all_reduce(most, phalanx::Reduction::kMax).wait();
    world.communicator().all_reduce(least, phalanx::Reduction::kMin).wait();
    largest = std::max(largest, (most - least).max().item<double>());
  }
  return largest;
}

int main() {
  phalanx::World world = phalanx::init();
  nn::Sequential model(nn::Linear(1, 32), nn::Tanh(), nn::Linear(32, 1));
  phalanx::DistributedDataParallel ddp(model, world, {.strategy = "local_sgd", .strategy_options = {{"every", "8"}}});
  torch::optim::Adam optimizer(model->parameters(), torch::optim::AdamOptions(0.01));

  torch::manual_seed(10 + world.rank());  // every rank has other samples
  torch::Tensor loss;
  for (int step = 1; step <= 500; ++step) {
    const torch::Tensor x = torch::rand({64, 1}) * 2 - 1;
    optimizer.zero_grad();
    loss = nn::functional::mse_loss(model->forward(x), torch::sin(3 * x));
    loss.backward();
    optimizer.step();
    ddp.after_step();  // averages the parameters in every eighth step
  }
  const double before = largest_difference(model, world);
  ddp.finish();  // averages once more, since 500 is not a multiple of 8
  const double after = largest_difference(model, world);
  if (world.rank() == 0) {
    std::cout << "loss " << loss.item<float>() << "\nreplicas differ by " << before << ", after finish() by " << after
              << std::endl;
  }
}
