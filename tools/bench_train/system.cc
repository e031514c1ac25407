// SPDX-License-Identifier: Apache-2.0
#include "tools/bench_train/system.h"

#include <algorithm>
#include <stdexcept>

namespace phalanx::bench_train {
namespace {

std::vector<System> of_phalanx() {
  return {
      {.name = "phalanx", .help = "strategy auto, the same model as ddp"},
      {.name = "phalanx_defaults", .help = "the same with the model's own defaults", .own_model = true},
      {.name = "phalanx_libtorch_kernels", .help = "LibTorch's kernels on the CPU", .options = {"kernels=libtorch"}},
      {.name = "phalanx_channels_last",
       .help = "memory format channels_last",
       .options = {"train.memory_format=channels_last"},
       .pictures = true},
      {.name = "phalanx_plain_malloc", .help = "without train's malloc settings", .plain_malloc = true},
      {.name = "phalanx_checkpoints",
       .help = "a checkpoint after every 100th step",
       .options = {"checkpoint.every_steps=100"},
       .period = 100},
      {.name = "phalanx_all_reduce", .help = "strategy all_reduce", .options = {"strategy=all_reduce"}},
      {.name = "phalanx_shrink",
       .help = "the same, ready to go on without a lost rank",
       .options = {"strategy=all_reduce", "faults.on_lost_rank=shrink"}},
      {.name = "phalanx_overlapped",
       .help = "strategy overlapped, with a progress thread and tuned buckets",
       .options = {"strategy=overlapped", "framework.progress_thread=on", "framework.bucket_bytes=auto"}},
      {.name = "phalanx_sharded",
       .help = "strategy sharded, every rank with a copy of the parameters",
       .options = {"strategy=sharded"}},
      {.name = "phalanx_copies",
       .help = "the same, with a copy of each rank's state in a neighbour's memory after every 10th step",
       .options = {"strategy=sharded", "faults.on_lost_rank=shrink", "faults.copies_every=10"},
       .period = 10},
      {.name = "phalanx_bf16",
       .help = "gradients sent as bf16",
       .options = {"strategy={name: all_reduce, compression: bf16}"}},
      {.name = "phalanx_powersgd",
       .help = "gradients compressed with PowerSGD of rank 2, after 10 steps",
       .options = {"strategy={name: all_reduce, compression: {name: powersgd, rank: 2, start_after: 10}}"},
       .warm_up = 12},
      {.name = "phalanx_local_sgd",
       .help = "strategy local_sgd, every 8 steps",
       .options = {"strategy={name: local_sgd, every: 8}"},
       .period = 8},
      {.name = "phalanx_diloco",
       .help = "strategy diloco, every 16 steps",
       .options = {"strategy={name: diloco, every: 16}"},
       .period = 16},
      {.name = "phalanx_tensor",
       .help = "layers divided among all ranks",
       .options = {"mesh.tensor=@ranks"},
       .model_parallel = true},
      {.name = "phalanx_zero3",
       .help = "strategy sharded, stage 3",
       .options = {"strategy={name: sharded, stage: 3}"},
       .model_parallel = true},
      {.name = "phalanx_pipe",
       .help = "a pipeline of all ranks, 1F1B",
       .options = {"mesh.pipe=@ranks"},
       .model_parallel = true},
      {.name = "no_communication",
       .help = "every rank on its own: the upper bound",
       .options = {"strategy=single"},
       .alone = true},
      {.name = "barrier_alone",
       .help = "no communication but a barrier in each step: the upper bound for synchronous training",
       .options = {"strategy={name: local_sgd, every: 1000000000}"},
       .has_barrier = true},
  };
}

// The same loop in C++, with gradients averaged by Phalanx as a library or by another system.
std::vector<System> of_cpp_loops() {
  return {
      {.name = "cpp_phalanx",
       .help = "phalanx::DistributedDataParallel with torch::optim",
       .framework = Framework::kLibrary,
       .options = {"auto"}},
      {.name = "cpp_phalanx_all_reduce",
       .help = "cpp_phalanx with strategy all_reduce",
       .framework = Framework::kLibrary,
       .options = {"all_reduce"}},
      {.name = "cpp_phalanx_overlapped",
       .help = "cpp_phalanx with strategy overlapped",
       .framework = Framework::kLibrary,
       .options = {"overlapped"}},
      {.name = "cpp_phalanx_fused",
       .help = "cpp_phalanx with phalanx::FusedOptimizer",
       .framework = Framework::kLibrary,
       .options = {"auto", "fused"}},
      {.name = "cpp_reducer",
       .help = "c10d::Reducer and ProcessGroupGloo with DDP's defaults",
       .framework = Framework::kCpp,
       .options = {"reducer"}},
      {.name = "cpp_reducer_views",
       .help = "the same with gradients that are views of buckets",
       .framework = Framework::kCpp,
       .options = {"reducer", "views"}},
      {.name = "cpp_mpi",
       .help = "an MPI_Allreduce for each parameter after backward",
       .framework = Framework::kCpp,
       .options = {"mpi"},
       .by_mpirun = true},
      {.name = "cpp_no_communication",
       .help = "every rank on its own: the upper bound of the C++ loops",
       .framework = Framework::kCpp,
       .options = {"alone"},
       .alone = true},
  };
}

std::vector<System> of_peers() {
  return {
      {.name = "ddp", .help = "PyTorch's DDP with gloo and its defaults", .framework = Framework::kTorch},
      {.name = "ddp_tuned_malloc",
       .help = "the same with train's malloc settings",
       .framework = Framework::kTorch,
       .tuned_malloc = true},
      {.name = "ddp_sdpa",
       .help = "the same with PyTorch's fused attention",
       .framework = Framework::kTorch,
       .options = {"sdpa"}},
      {.name = "ddp_channels_last",
       .help = "the same with memory format channels_last",
       .framework = Framework::kTorch,
       .options = {"channels_last"},
       .pictures = true},
      {.name = "ddp_powersgd",
       .help = "the same with its PowerSGD hook of rank 2, after 10 steps",
       .framework = Framework::kTorch,
       .options = {"powersgd"},
       .warm_up = 12},
      {.name = "torch_tensor",
       .help = "PyTorch's tensor parallelism (parallelize_module) with gloo",
       .framework = Framework::kTorch,
       .options = {"tensor"},
       .model_parallel = true},
      {.name = "torch_fsdp2",
       .help = "PyTorch's FSDP2 (fully_shard) of each block with gloo",
       .framework = Framework::kTorch,
       .options = {"fsdp2"},
       .model_parallel = true},
      {.name = "torch_pipe",
       .help = "PyTorch's pipeline, 1F1B, with gloo",
       .framework = Framework::kTorch,
       .options = {"pipe"},
       .model_parallel = true},
      {.name = "torch_process",
       .help = "one process of PyTorch with a thread for each rank",
       .framework = Framework::kTorch,
       .options = {"process"},
       .one_process = true},
      {.name = "jax",
       .help = "one process of JAX, compiled by XLA, on a core for each rank",
       .framework = Framework::kJax,
       .one_process = true},
  };
}

}  // namespace

const std::vector<System>& systems() {
  static const std::vector<System> all = [] {
    auto all = of_phalanx();
    for (auto& more : {of_cpp_loops(), of_peers()}) std::ranges::copy(more, std::back_inserter(all));
    return all;
  }();
  return all;
}

const System& find_system(const std::string& name) {
  const auto& all = systems();
  const auto found = std::ranges::find(all, name, &System::name);
  if (found == all.end()) throw std::out_of_range("there is no system " + name);
  return *found;
}

}  // namespace phalanx::bench_train
