// SPDX-License-Identifier: Apache-2.0
// An MPI program that simulates heat in a ring, and trains a network beside its solver that learns the solver's step.
// The library uses the program's own MPI. Two ranks: mpirun -np 2 mpi_simulation
#include <mpi.h>
#include <phalanx/mpi.h>
#include <phalanx/phalanx.h>
#include <torch/torch.h>

#include <cstdio>
#include <vector>

constexpr int kCells = 64;  // of the ring on each rank

// The solver, which knows nothing of networks. `cells` has a cell of each neighbor at its ends.
void exchange_ends(std::vector<float>& cells, MPI_Comm ranks) {
  int rank = 0, size = 1;
  MPI_Comm_rank(ranks, &rank);
  MPI_Comm_size(ranks, &size);
  const int left = (rank + size - 1) % size, right = (rank + 1) % size;
  const auto pass = [&](float* mine, int to, float* theirs, int from) {
    MPI_Sendrecv(mine, 1, MPI_FLOAT, to, 0, theirs, 1, MPI_FLOAT, from, 0, ranks, MPI_STATUS_IGNORE);
  };
  pass(&cells[1], left, &cells[kCells + 1], right);
  pass(&cells[kCells], right, &cells[0], left);
}
void advance(std::vector<float>& cells) {
  const std::vector<float> old = cells;
  for (int i = 1; i <= kCells; ++i) cells[i] = 0.2F * old[i - 1] + 0.5F * old[i] + 0.2F * old[i + 1];
}

void simulate(MPI_Comm ranks) {
  phalanx::World world = phalanx::world_over_mpi(ranks);
  torch::nn::Linear network(torch::nn::LinearOptions(3, 1).bias(false));
  phalanx::DistributedDataParallel ddp(network, world);
  torch::optim::SGD optimizer(network->parameters(), 0.1);

  std::vector<float> cells(kCells + 2);
  torch::Tensor view = torch::from_blob(cells.data(), {kCells + 2});  // the solver's memory
  torch::manual_seed(world.rank());
  for (int step = 0; step < 300; ++step) {
    view += torch::randn({kCells + 2});  // sources of heat
    exchange_ends(cells, ranks);
    const torch::Tensor neighborhoods = view.clone().unfold(0, 3, 1);  // [cells, 3]
    advance(cells);
    optimizer.zero_grad();
    const torch::Tensor predicted = network->forward(neighborhoods).squeeze(1);
    torch::nn::functional::mse_loss(predicted, view.narrow(0, 1, kCells)).backward();
    optimizer.step();
  }
  const torch::Tensor w = network->weight.flatten();
  if (world.rank() > 0) return;
  std::printf("learned %.2f %.2f %.2f\n", w[0].item<float>(), w[1].item<float>(), w[2].item<float>());
}

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  simulate(MPI_COMM_WORLD);  // its world is gone when it returns, as MPI_Finalize requires
  MPI_Finalize();
}
