// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>
#include <torch/optim/optimizer.h>

#include <memory>
#include <string>

#include "phalanx/optimizers.h"
#include "phalanx/world.h"

namespace phalanx {

// Files of modules and optimizers. All functions are collective. Only rank 0 needs to see the file, except where each
// rank writes its own file. A file is written under another name, flushed to the disk and renamed, so that it is either
// the old or the new one, whenever the program ends. The functions throw DataError, with the path, on all ranks if one
// rank fails.

/// Writes rank 0's parameters and buffers, in the format of torch::save().
void save(const torch::nn::Module& module, const std::string& path, World& world);

/// Gives all ranks the parameters and buffers of the file, in place, converted to the dtypes that they have. Reads what
/// Module::save() writes; an override of Module::load() is not called.
void load(torch::nn::Module& module, const std::string& path, World& world);

/// Writes rank 0's state and settings, in the format of torch::save().
void save(const torch::optim::Optimizer& optimizer, const std::string& path, World& world);

/// Gives all ranks the state and settings of the file.
void load(torch::optim::Optimizer& optimizer, const std::string& path, World& world);

/// Writes the state of each rank's part to `path`.0, `path`.1, ... The file of rank 0 says how many there are.
void save(FusedOptimizer& optimizer, const std::string& path, World& world);

/// Reads such files, which all ranks must see. The number of ranks, the strategy and the buckets may have changed.
void load(FusedOptimizer& optimizer, const std::string& path, World& world);

template <class Module>
void save(const torch::nn::ModuleHolder<Module>& module, const std::string& path, World& world) {
  save(static_cast<const torch::nn::Module&>(*module), path, world);
}
template <class Module>
void load(torch::nn::ModuleHolder<Module>& module, const std::string& path, World& world) {
  load(static_cast<torch::nn::Module&>(*module), path, world);
}
template <class Module>
void save(const std::shared_ptr<Module>& module, const std::string& path, World& world) {
  save(static_cast<const torch::nn::Module&>(*module), path, world);
}
template <class Module>
void load(const std::shared_ptr<Module>& module, const std::string& path, World& world) {
  load(static_cast<torch::nn::Module&>(*module), path, world);
}

}  // namespace phalanx
