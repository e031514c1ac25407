// SPDX-License-Identifier: Apache-2.0
#include "phalanx/checkpoint.h"

#include <functional>

#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/comm/texts.h"
#include "phalanx/internal/fused_updates.h"
#include "phalanx/internal/module_tensors.h"
#include "phalanx/internal/serialized.h"
#include "phalanx/internal/slice_state.h"

namespace phalanx {
namespace {

// Runs `body` on this rank if `here`, and throws the first DataError of all ranks on all of them. Collective.
void together(World& world, const std::string& path, bool here, const std::function<void()>& body) {
  std::string problem;
  try {
    if (here) body();
  } catch (const DataError& error) {
    problem = error.what();
  } catch (const std::exception& error) {
    problem = path + ": " + error.what();
  }
  for (const auto& one : all_gather_text(problem, world.communicator())) {
    if (!one.empty()) throw DataError(one);
  }
}

template <class Object>
void save_on_rank_0(const Object& object, const std::string& path, World& world) {
  together(world, path, world.rank() == 0, [&] { write_atomically(path, to_bytes(object)); });
}

std::string part_of(const std::string& path, int rank) { return path + "." + std::to_string(rank); }

}  // namespace

void save(const torch::nn::Module& module, const std::string& path, World& world) {
  save_on_rank_0(module, path, world);
}

void save(const torch::optim::Optimizer& optimizer, const std::string& path, World& world) {
  save_on_rank_0(optimizer, path, world);
}

void load(torch::nn::Module& module, const std::string& path, World& world) {
  together(world, path, world.rank() == 0, [&] { from_bytes(module, read_file(path)); });
  const ModuleTensors tensors = tensors_of(module);
  std::vector<at::Tensor> all = tensors.constant;
  for (const auto& [name, parameter] : tensors.trained) all.push_back(parameter);
  all.insert(all.end(), tensors.buffers.begin(), tensors.buffers.end());
  broadcast_values(all, 0, world.communicator());
}

void load(torch::optim::Optimizer& optimizer, const std::string& path, World& world) {
  std::string bytes;
  together(world, path, world.rank() == 0, [&] { bytes = read_file(path); });
  bytes = broadcast_text(bytes, world.communicator());
  together(world, path, true, [&] { from_bytes(optimizer, bytes); });
}

// Ranks that update all parameters have the same state, unless the strategy averages parameters; then rank 0's is kept.
void save(FusedOptimizer& optimizer, const std::string& path, World& world) {
  auto& updates = *optimizer.updates_;
  const bool shards = updates.exchange().traits().shards_update;
  together(world, path, shards || world.rank() == 0, [&] {
    save_slice_state(updates.optimizer(), updates.exchange().slices(), part_of(path, world.rank()),
                     shards ? world.size() : 1);
  });
}

void load(FusedOptimizer& optimizer, const std::string& path, World& world) {
  auto& updates = *optimizer.updates_;
  together(world, path, true, [&] {
    load_slice_state(updates.optimizer(), updates.exchange().slices(), [&](int part) { return part_of(path, part); });
  });
}

}  // namespace phalanx
