// SPDX-License-Identifier: Apache-2.0
// Two ranks pass a tensor from one to the other: first while both wait for it, then while they do something else.
// Starts its ranks itself: send_receive
#include <phalanx/phalanx.h>
#include <torch/torch.h>

#include <iostream>

// An operation returns a Work at once. wait() blocks until this rank's part is complete.
void blocking(phalanx::World& world) {
  torch::Tensor tensor = torch::zeros({1});
  if (world.rank() == 0) {
    tensor += 1;
    world.communicator().send(tensor, /*peer=*/1).wait();
  } else {
    world.communicator().recv(tensor, /*peer=*/0).wait();
  }
  std::cout << "blocking: rank " << world.rank() << " has " << tensor.item<float>() << std::endl;
}

// The tensor belongs to the operation until wait() returns.
void immediate(phalanx::World& world) {
  torch::Tensor tensor = torch::zeros({1});
  phalanx::Work work;
  if (world.rank() == 0) {
    tensor += 2;
    work = world.communicator().send(tensor, /*peer=*/1);
  } else {
    work = world.communicator().recv(tensor, /*peer=*/0);
  }
  const double meanwhile = torch::ones({100}).sum().item<double>();
  work.wait();
  std::cout << "immediate: rank " << world.rank() << " has " << tensor.item<float>() << " and computed " << meanwhile
            << std::endl;
}

int main() {
  phalanx::launch(2, [](phalanx::World& world) {
    blocking(world);
    immediate(world);
  });
}
