// SPDX-License-Identifier: Apache-2.0
// The pieces of code in README.md and docs/cpp.md that are no whole programs. They are only compiled: ../pages_test.py
// sees that the pages show lines of this file.
#include <mpi.h>
#include <phalanx/mpi.h>
#include <phalanx/phalanx.h>
#include <torch/torch.h>

using Batch = torch::Tensor;

void three_lines(torch::nn::Sequential& model, const torch::Tensor& loss) {
  phalanx::World world = phalanx::init();
  phalanx::DistributedDataParallel ddp(model, world);  // your torch::nn module
  loss.backward();                                     // as before, but the gradients are now those of all ranks
}

template <class Loss>
void accumulate(phalanx::DistributedDataParallel& ddp, const Loss& loss_of, const Batch& first, const Batch& second) {
  {
    const auto scope = ddp.no_sync();
    (loss_of(first) / 2).backward();
  }
  (loss_of(second) / 2).backward();  // exchanges the sum of both
}

void accumulate_sums(phalanx::DistributedDataParallel& ddp, const Batch& first, const Batch& second) {
  accumulate(ddp, [](const Batch& batch) { return batch.sum(); }, first, second);
}

void average_by_hand(torch::nn::Sequential& model, torch::optim::SGD& optimizer, const torch::Tensor& loss, int size) {
  // clang-format off
  loss.backward();
  for (auto& parameter : model->parameters()) {
    auto gradient = parameter.grad();
    MPI_Allreduce(MPI_IN_PLACE, gradient.data_ptr<float>(), gradient.numel(), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    gradient.div_(size);
  }
  optimizer.step();
  // clang-format on
}

// The tables of docs/cpp.md.
void connect(MPI_Comm comm) {
  phalanx::init({.init_method = "tcp://10.0.0.1:29500", .rank = 1, .world_size = 4});
  phalanx::init({.init_method = "file:///shared/job7", .rank = 1, .world_size = 4});
  phalanx::init({.backend = "gloo"});
  phalanx::world_over_mpi(comm);
}

void translate_from_python(torch::nn::Sequential& model, phalanx::World& world, std::size_t size,
                           torch::Tensor tensor) {
  phalanx::DistributedDataParallel ddp(model, world,
                                       {.strategy = "sharded", .compression = "bf16", .uneven_inputs = true});
  phalanx::FusedOptimizer optimizer(ddp, "adamw");
  phalanx::DistributedSampler sampler(size, world);
  world.communicator().all_reduce(tensor, phalanx::Reduction::kSum).wait();
  const phalanx::CommunicatorPtr group = world.group(/*color=*/0);
  ddp.join();
  phalanx::use_kernels();
  phalanx::library_version();
}
