// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "framework/collectives/selection/decisions.h"
#include "framework/collectives/selection/table.h"
#include "framework/comm/decorator.h"

namespace phalanx {

/// A communicator that does each operation in the way that a table says: the backend's own way, an algorithm over its
/// sends and receives, or either of the two on another backend that connects the same ranks.
///
///     SelectingCommunicator group(world, SelectionTable{{.op = "all_reduce", .algorithm = "ring"}});
///     group.all_reduce(gradients, Reduction::kMean).wait();
///
/// Every way keeps the contract of Communicator: what runs as an algorithm or on another backend takes its place in the
/// order of this one's operations, by run(). All ranks must have the same table: they would wait for each other's
/// messages otherwise, until the deadline. Groups that are split from this one have the same table and are split on the
/// other backends too. send, recv, barrier, run and allocate are the inner communicator's.
class SelectingCommunicator final : public Decorator {
 public:
  /// Another backend's communicator of the same ranks in the same order, which nobody else uses.
  struct Alternative {
    std::string backend;
    CommunicatorPtr group;
  };

  /// Throws ConfigError for a rule that names a backend which is not among the alternatives, std::invalid_argument for
  /// an alternative of other ranks.
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
  Decisions decisions_;
};

}  // namespace phalanx
