// SPDX-License-Identifier: Apache-2.0
// LibTorch's MNIST example on several ranks. Only the lines with "phalanx::" or "world" were added to it.
// Two ranks: torchrun --nproc-per-node 2 --no-python ddp_mnist FOLDER [EPOCHS]
#include <phalanx/phalanx.h>
#include <torch/torch.h>

#include <iostream>
#include <string>
#include <utility>

namespace nn = torch::nn;
namespace data = torch::data;
using data::datasets::MNIST;

struct NetImpl : nn::Module {
  torch::Tensor forward(torch::Tensor x) {
    x = torch::relu(torch::max_pool2d(conv1(x), 2));
    x = torch::relu(torch::max_pool2d(conv2(x), 2));
    return fc2(torch::relu(fc1(x.flatten(1))));
  }
  nn::Conv2d conv1{register_module("conv1", nn::Conv2d(1, 10, 5))},
      conv2{register_module("conv2", nn::Conv2d(10, 20, 5))};
  nn::Linear fc1{register_module("fc1", nn::Linear(320, 50))}, fc2{register_module("fc2", nn::Linear(50, 10))};
};
TORCH_MODULE(Net);

// Returns the share of the test images that all ranks together classify correctly; each rank takes a part of them.
double accuracy(Net& net, const std::string& folder, phalanx::World& world) {
  const torch::NoGradGuard no_grad;
  const MNIST test(folder, MNIST::Mode::kTest);
  const torch::Tensor images = test.images().chunk(world.size())[world.rank()];
  const torch::Tensor targets = test.targets().chunk(world.size())[world.rank()];
  torch::Tensor correct = net->forward(images).argmax(1).eq(targets).sum();
  world.communicator().all_reduce(correct, phalanx::Reduction::kSum).wait();
  return correct.item<double>() / static_cast<double>(*test.size());
}

int main(int argc, char** argv) {
  const std::string folder = argc > 1 ? argv[1] : "data/mnist";
  const int epochs = argc > 2 ? std::stoi(argv[2]) : 3;
  phalanx::World world = phalanx::init();

  auto images = MNIST(folder).map(data::transforms::Stack<>());
  phalanx::DistributedSampler sampler(*images.size(), world);
  auto loader = data::make_data_loader(std::move(images), std::move(sampler), 64 / world.size());
  Net net;
  phalanx::DistributedDataParallel ddp(net, world);
  torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.02).momentum(0.9));
  for (int epoch = 1; epoch <= epochs; ++epoch) {
    for (auto& batch : *loader) {
      optimizer.zero_grad();
      nn::functional::cross_entropy(net->forward(batch.data), batch.target).backward();
      optimizer.step();
    }
    const double share = accuracy(net, folder, world);
    if (world.rank() == 0) std::cout << "epoch " << epoch << ": accuracy " << share << std::endl;
  }
  phalanx::save(net, "mnist.pt", world);
}
