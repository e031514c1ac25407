// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "framework/collectives/selection/live_selection.h"
#include "framework/collectives/selection/selection_table.h"
#include "framework/collectives/selection/topology.h"
#include "framework/collectives/selection/tuned_file.h"
#include "framework/comm/communicator.h"

namespace phalanx {

/// Chooses the algorithms of a world and of all groups split from it while a program runs: it records the operations of
/// the program, measures the candidates for their sizes on groups of the same shape, and replaces the table. One object
/// per rank.
///
///     tuner.record();
///     ...                  // the operations that the program repeats
///     tuner.tune(*world);  // between two operations, on all ranks
///
/// All ranks get the same table. Measurements are kept in two files that only rank 0 reads and writes: one of this run
/// and one in a cache, whose name depends on the topology. Measurements that the files have are not made again, so a
/// later run on the same topology gets the same table if its operations have the same sizes.
class Tuner {
 public:
  struct Options {
    Topology topology{};     // of the world
    SelectionTable first{};  // rules that come before the tuner's
    std::string run_file{};  // of this run; need not exist
    std::string cache{};     // folder of the cache, which is created; empty: none
  };

  /// `selection` is the selection of the world's SelectingCommunicator, with Tuning::kOn.
  Tuner(std::shared_ptr<LiveSelection> selection, Options options);

  /// Uses the file of this run if there is one that fits the topology. Returns true if so. Collective over `world`.
  bool adopt(Communicator& world);

  /// Starts to record operations.
  void record();

  /// Stops recording, makes the missing measurements, and replaces the table. A file that cannot be written is only
  /// logged. Collective over `world`, whose ranks have the same numbers as in the world of the selection; operations
  /// may be under way. Throws the errors of operations.
  void tune(Communicator& world);

 private:
  /// A measurement to make: an operation of a size on a kind of group.
  struct Task {
    std::int64_t ranks = 0;
    Scope scope = Scope::kHost;
    Op op = Op::kNone;
    int size_class = 0;

    auto operator<=>(const Task&) const = default;
  };

  /// The groups on which measurements are made, each as a list of ranks.
  using Groups = std::set<std::vector<int>>;

  void use(const std::vector<Measured>& measured);
  std::vector<Measured> measure(Communicator& world, const std::set<Task>& tasks, const Groups& groups) const;
  bool has_shape(const std::vector<int>& group, const Task& task) const;
  std::string cache_file() const;
  std::string read_fitting(const std::string& path) const;
  void save(const std::vector<Measured>& measured) const;

  std::shared_ptr<LiveSelection> selection_;
  Options options_;
};

}  // namespace phalanx
