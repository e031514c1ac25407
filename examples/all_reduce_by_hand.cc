// SPDX-License-Identifier: Apache-2.0
// A ring all-reduce of sends and receives, compared with the library's. Starts its ranks itself: all_reduce_by_hand
#include <phalanx/phalanx.h>
#include <torch/torch.h>

#include <iostream>
#include <string>
#include <vector>

// Every rank passes a part to its right neighbor while it receives one from the left, 2 (P - 1) times. First each part
// collects the sum of all ranks on its way around the ring, then the sums go around once more.
void ring_all_reduce(phalanx::Communicator& group, torch::Tensor tensor) {
  const int rank = group.rank(), size = group.size();
  const int left = (rank + size - 1) % size, right = (rank + 1) % size;
  std::vector<torch::Tensor> parts = tensor.chunk(size);  // views
  const auto part = [&](int number) -> torch::Tensor& { return parts[((number % size) + size) % size]; };

  for (int step = 0; step < size - 1; ++step) {
    torch::Tensor received = torch::empty_like(part(rank - step - 1));
    phalanx::Work sent = group.send(part(rank - step), right);
    group.recv(received, left).wait();
    part(rank - step - 1) += received;
    sent.wait();
  }
  for (int step = 0; step < size - 1; ++step) {
    phalanx::Work sent = group.send(part(rank + 1 - step), right);
    group.recv(part(rank - step), left).wait();
    sent.wait();
  }
}

void run(phalanx::World& world) {
  torch::manual_seed(world.rank());
  torch::Tensor by_hand = torch::randn({1000 * world.size()});
  torch::Tensor expected = by_hand.clone();

  ring_all_reduce(world.communicator(), by_hand);
  world.communicator().all_reduce(expected, phalanx::Reduction::kSum).wait();

  const bool same = torch::allclose(by_hand, expected, /*rtol=*/1e-5, /*atol=*/1e-5);
  std::cout << "rank " + std::to_string(world.rank()) + (same ? ": the same sums" : ": DIFFERENT SUMS") << std::endl;
}

int main() { phalanx::launch(4, run); }
