// SPDX-License-Identifier: Apache-2.0
// Asynchronous SGD: ranks read the parameters from servers and send gradients, at their own speed. A slow rank does not
// delay the others. Two ranks: torchrun --nproc-per-node 2 --no-python parameter_server
#include <phalanx/phalanx.h>
#include <torch/torch.h>

#include <cstdint>
#include <iostream>

constexpr std::int64_t kElements = 1000;

int main() {
  phalanx::World world = phalanx::init();
  torch::manual_seed(1);
  const torch::Tensor truth = torch::randn({kElements});  // what is to be learned

  // Each rank serves a part of every table. Rule 0 applies a gradient: w += -0.05 * gradient.
  phalanx::ParameterServers servers(world);
  phalanx::ps::Client& client = servers.client();
  phalanx::ps::Table table =
      client.create({.name = "w", .elements = kElements, .rules = {"{name: add, factor: -0.05}"}});

  torch::manual_seed(10 + world.rank());
  const int steps = 300 * (world.rank() + 1);  // the ranks are not equally fast
  torch::Tensor w = torch::zeros({kElements});
  for (int step = 0; step < steps; ++step) {
    client.pull(table, w).wait();
    const torch::Tensor noise = 0.1 * torch::randn({kElements});
    const torch::Tensor gradient = w - truth + noise;
    client.push(table, gradient, {.rule = 0}).wait();
  }

  world.barrier();  // all ranks have sent everything
  client.pull(table, w).wait();
  if (world.rank() == 0) {
    std::cout << "error " << (w - truth).abs().mean().item<float>() << " of " << truth.abs().mean().item<float>()
              << std::endl;
  }
}
