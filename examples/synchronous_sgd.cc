// SPDX-License-Identifier: Apache-2.0
// Data-parallel training in which the program itself divides the samples and averages the gradients.
// Two ranks: torchrun --nproc-per-node 2 --no-python synchronous_sgd
#include <phalanx/phalanx.h>
#include <torch/torch.h>

#include <cstdint>
#include <iostream>

namespace nn = torch::nn;

// Averages the gradients of all ranks, one parameter after the other. DistributedDataParallel does the same faster: in
// buckets, and during backward.
void average_gradients(nn::Sequential& model, phalanx::World& world) {
  for (torch::Tensor& parameter : model->parameters()) {
    world.communicator().all_reduce(parameter.grad(), phalanx::Reduction::kMean).wait();
  }
}

int main() {
  phalanx::World world = phalanx::init();

  // The same samples and initial values on all ranks, because the seed is the same.
  torch::manual_seed(1);
  const torch::Tensor inputs = torch::randn({1024, 2});
  const torch::Tensor targets = (inputs.pow(2).sum(1) > 1.4).to(torch::kLong);  // inside or outside a circle
  nn::Sequential model(nn::Linear(2, 32), nn::Tanh(), nn::Linear(32, 2));
  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));

  const torch::Tensor my_inputs = inputs.chunk(world.size())[world.rank()];
  const torch::Tensor my_targets = targets.chunk(world.size())[world.rank()];
  const std::int64_t batch = 64 / world.size();
  for (int epoch = 1; epoch <= 20; ++epoch) {
    double sum = 0;
    const std::int64_t steps = my_inputs.size(0) / batch;
    for (std::int64_t step = 0; step < steps; ++step) {
      const torch::Tensor x = my_inputs.narrow(0, step * batch, batch), y = my_targets.narrow(0, step * batch, batch);
      optimizer.zero_grad();
      const torch::Tensor loss = nn::functional::cross_entropy(model->forward(x), y);
      loss.backward();
      average_gradients(model, world);
      optimizer.step();
      sum += loss.item<double>();
    }
    torch::Tensor mean = torch::full({1}, sum / static_cast<double>(steps));
    world.communicator().all_reduce(mean, phalanx::Reduction::kMean).wait();
    if (world.rank() == 0) std::cout << "epoch " << epoch << ": loss " << mean.item<float>() << std::endl;
  }
}
