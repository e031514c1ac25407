// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "framework/collectives/selection/live_selection.h"
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

  /// `inner` is a world: scopes of rules describe groups of its ranks. Throws ConfigError if a rule names a backend
  /// that is not among the alternatives, and std::invalid_argument if an alternative has other ranks. Collective and
  /// blocking if the selection needs the ranks of groups.
  SelectingCommunicator(CommunicatorPtr inner, std::shared_ptr<LiveSelection> selection,
                        std::vector<Alternative> alternatives = {});

  /// Does the same with a table that never changes.
  SelectingCommunicator(CommunicatorPtr inner, SelectionTable table, std::vector<Alternative> alternatives = {});

  SelectionTable table() const { return selection_->table(); }

  Work launch(Operation operation) override;
  CommunicatorPtr split(int color, int key) override;
  CommunicatorPtr do_shrink() override;
  std::string why_no_shrink() const override;

 protected:
  CommunicatorPtr wrap(CommunicatorPtr child) override;

 private:
  // `ranks` are the group's ranks in the world, or empty if the selection does not need them.
  SelectingCommunicator(CommunicatorPtr inner, std::shared_ptr<LiveSelection> selection,
                        std::vector<Alternative> alternatives, std::vector<int> ranks);

  CommunicatorPtr with_same_selection(CommunicatorPtr child, std::vector<Alternative> alternatives) const;
  void resolve();

  std::shared_ptr<LiveSelection> selection_;
  std::vector<Alternative> alternatives_;
  std::vector<int> ranks_;
  OperationSizes* sizes_ = nullptr;  // null if ranks are unknown
  std::uint64_t version_ = 0;        // of the resolved table
  ResolvedTable resolved_;
};

}  // namespace phalanx
