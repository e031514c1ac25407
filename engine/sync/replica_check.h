#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/comm/communicator.h"
#include "framework/comm/mesh.h"
#include "framework/parallel/flat_parameters.h"

namespace phalanx {

/// Whether replicas that are to be equal are, bit for bit: a digest of every parameter, compared between the ranks that
/// have the same ones. Bytes on the wire: 8 for each parameter and rank.
class ReplicaCheck {
 public:
  /// `repair`: give diverged parameters the values that most ranks have, those of rank 0 where none are more, and log
  /// it. `every_steps`: for after_step(); 0: never.
  ReplicaCheck(const Mesh& mesh, const FlatParameters& parameters, bool repair, std::int64_t every_steps = 0);

  /// Checks after every so many steps; where replicas are not to be equal then, after the next step at which they are.
  void after_step(std::int64_t step, bool to_be_equal);

  /// After training, when all replicas are equal: the check that was still to come.
  void at_end(std::int64_t step);

  /// Whether one is to come, for checkpoints.
  bool due() const { return due_; }
  void set_due(bool due) { due_ = due; }

  /// Throws Error naming the step, the first parameter that differs and the ranks where it does, on all ranks alike,
  /// unless it repairs. Collective.
  void check(std::int64_t step);

 private:
  struct Divergence {
    std::string parameter;
    at::Tensor values;
    std::vector<int> ranks;  // that differ from most
    int source;              // the lowest that does not
  };

  std::vector<std::vector<std::int64_t>> all_digests() const;
  std::vector<Divergence> find() const;

  CommunicatorPtr replicas_, control_;  // the same ranks
  const FlatParameters& parameters_;
  bool repair_;
  std::int64_t every_steps_;
  bool due_ = false;
};

}  // namespace phalanx
