// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "framework/collectives/selection/resolved_table.h"
#include "framework/collectives/selection/selection_table.h"
#include "framework/comm/decorator.h"

namespace phalanx {

/// A communicator that performs each operation as a table says: with the backend's own implementation, with an
/// algorithm over its sends and receives, or with either of the two on another backend that connects the same ranks.
///
///     SelectingCommunicator group(world, SelectionTable{{.op = "all_reduce", .algorithm = "ring"}});
///     group.all_reduce(gradients, Reduction::kMean).wait();
///
/// The contract of Communicator holds in every case: an operation that runs as an algorithm or on another backend is
/// ordered with the other operations of this communicator by run(). All ranks must have the same table; otherwise they
/// wait for messages that never come, until the deadline. Groups that are split from this one have the same table and
/// are also split on the other backends. send, recv, barrier, run and allocate are passed on to the inner communicator.
class SelectingCommunicator final : public Decorator {
 public:
  /// A communicator of another backend with the same ranks in the same order. No one else may use it.
  struct Alternative {
    std::string backend;
    CommunicatorPtr group;
  };

  /// Throws ConfigError if a rule names a backend that is not among the alternatives, and std::invalid_argument if an
  /// alternative has other ranks.
  SelectingCommunicator(CommunicatorPtr inner, SelectionTable table, std::vector<Alternative> alternatives = {});

  const SelectionTable& table() const { return table_; }

  Work launch(Operation operation) override;
  CommunicatorPtr split(int color, int key) override;
  CommunicatorPtr shrink() override;

 protected:
  CommunicatorPtr wrap(CommunicatorPtr child) override;

 private:
  SelectionTable table_;
  std::vector<Alternative> alternatives_;
  ResolvedTable resolved_;
};

}  // namespace phalanx
