// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "engine/config/experiment_config.h"
#include "tools/bench_train/workload.h"

namespace phalanx::bench_train {

/// The framework that trains.
enum class Framework {
  kPhalanx,  // by a config
  kLibrary,  // phalanx::DistributedDataParallel in the C++ loop of cpp/loop.h
  kCpp,      // the same loop with what C++ programs have without Phalanx (cpp/peer.cc)
  kTorch,    // PyTorch
  kJax,
};

/// A way to train a workload: Phalanx with some keys of its config set, or a C++ loop, PyTorch or JAX with some
/// options.
struct System {
  std::string name;
  std::string help;
  Framework framework = Framework::kPhalanx;
  std::vector<std::string> options{};  // Phalanx: "key.path=value", where "@ranks" is the number of ranks; C++ loops
                                       // and PyTorch: words that cpp/peer.cc and ddp_peer.py know
  bool own_model = false;              // use Phalanx's own defaults for the model
  bool alone = false;                  // each rank trains alone, in a world of size one
  bool one_process = false;            // one process with a thread for each rank trains the batches of all ranks
  bool by_mpirun = false;              // mpirun starts the ranks
  bool has_barrier = false;            // run a barrier in every step
  bool plain_malloc = false;           // do not apply train's settings of malloc to Phalanx
  bool tuned_malloc = false;           // apply train's settings of malloc to the peer
  bool pictures = false;               // only for convolutional models
  bool model_parallel = false;         // only for models that the peer can divide
  int period = 1;                      // every turn has a multiple of this number of steps, as some work is done once
                                       // in so many steps
  int warm_up = 1;                     // initial steps, at least, without the feature in the name
};

/// Returns all systems.
const std::vector<System>& systems();

/// Throws std::out_of_range if there is no system of this name.
const System& find_system(const std::string& name);

inline bool is_cpp_loop(const System& system) {
  return system.framework == Framework::kLibrary || system.framework == Framework::kCpp;
}

/// Returns true if the system has the workload's model, and if the option that names the system makes a difference for
/// it.
inline bool applies(const System& system, const Workload& workload) {
  if (system.framework == Framework::kTorch && !workload.in_torch) return false;
  if (system.framework == Framework::kJax && !workload.in_jax) return false;
  if (is_cpp_loop(system) && !workload.in_cpp) return false;
  return (workload.pictures || !system.pictures) && (workload.divisible || !system.model_parallel);
}

/// Returns the config with which Phalanx trains the workload as the system describes, on `ranks` ranks, without end.
/// Throws ConfigError for options that do not fit.
ExperimentConfig make_config(const Workload& workload, const System& system, int ranks);

}  // namespace phalanx::bench_train
