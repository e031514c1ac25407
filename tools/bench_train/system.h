// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "engine/experiment/config.h"
#include "tools/bench_train/workload.h"

namespace phalanx::bench_train {

/// Which code trains.
enum class Framework { kPhalanx, kTorch, kJax };

/// A way to train a workload: Phalanx with some keys of its config set, or PyTorch or JAX with some options.
struct System {
  std::string name;
  std::string help;
  Framework framework = Framework::kPhalanx;
  std::vector<std::string> options{};  // of Phalanx: "key.path=value", where "@ranks" is their number; of PyTorch:
                                       // words that ddp_peer.py knows
  bool own_model = false;              // Phalanx's own defaults for the model
  bool alone = false;                  // every rank is a world of its own
  bool one_process = false;            // with a thread for each rank, and the batches of all of them
  bool meets = false;                  // a barrier in every step
  bool plain_malloc = false;           // Phalanx without train's settings of malloc
  bool tuned_malloc = false;           // the peer with them
  bool pictures = false;               // only for models of convolutions
  bool divides = false;                // only for models whose peer it can divide
  int period = 1;                      // what it does every so many steps belongs to every turn
  int warm_up = 1;                     // first steps, at least, that are not what it is named for
};

/// All there are, by name.
const std::vector<System>& systems();

/// Throws std::out_of_range.
const System& find_system(const std::string& name);

/// Returns true if the system has the workload's model, and is another system there than those without the option it
/// is named for.
inline bool applies(const System& system, const Workload& workload) {
  if (system.framework == Framework::kTorch && !workload.in_torch) return false;
  if (system.framework == Framework::kJax && !workload.in_jax) return false;
  return (workload.pictures || !system.pictures) && (workload.divisible || !system.divides);
}

/// The config by which Phalanx trains the workload as the system says, on so many ranks, without end. Throws
/// ConfigError for options that do not fit.
ExperimentConfig make_config(const Workload& workload, const System& system, int ranks);

}  // namespace phalanx::bench_train
