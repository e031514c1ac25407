// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "framework/backends/mpi/group.h"
#include "framework/backends/mpi/message.h"
#include "framework/comm/communicator.h"
#include "framework/comm/operation_queue.h"

namespace phalanx::mpi {

/// Communicator over MPI. Collectives are MPI's nonblocking ones, one after the other (OperationQueue). What MPI has
/// not goes the direct way over send and recv: reductions of a user's own, and gather, scatter, all_gather and
/// reduce_scatter of more elements than an int counts.
///
/// What MPI cannot do: ranks that call different collectives are not told so. Such calls time out or end with what MPI
/// makes of them: mostly an error, but a rank that gets more than it has room for may be overwritten. A timeout of a
/// collective does not name the ranks that are absent. send and recv do tell a mismatch and a rank.
class MpiCommunicator final : public Communicator, public std::enable_shared_from_this<MpiCommunicator> {
 public:
  /// `queue` is that of all communicators of the world, as `group`'s inbox is.
  MpiCommunicator(std::shared_ptr<Group> group, std::shared_ptr<OperationQueue> queue);

  int rank() const override { return group().rank(); }
  int size() const override { return group().size(); }
  const std::string& name() const override { return group().options().name; }

  bool takes(c10::DeviceType device) const override { return device == c10::kCPU; }

  Work launch(Operation operation) override;
  Work run(const Call& call, std::function<void()> body) override;
  CommunicatorPtr split(int color, int key) override;
  CommunicatorPtr shrink() override { refuse_shrink("mpi"); }
  bool shares_memory() const override { return size() == 1; }

  /// Plain memory, and without meeting the other ranks: MPI moves all memory alike, while memory of MPI_Alloc_mem would
  /// have to be given back before MPI ends, and tensors may live longer.
  at::Tensor do_allocate(const Allocation& allocation) override;

  const FlightRecorder& recorder() const override { return postbox_.queue->recorder(); }

 private:
  Group& group() const { return *postbox_.group; }
  Work launch_message(at::Tensor tensor, const Call& call);
  bool can_by_mpi(const Call& call) const;

  Postbox postbox_;
};

/// The world on a communicator of its own, so that it does not meet messages of a host application. MPI must have been
/// started (runtime.h). Collective; throws CommError.
std::shared_ptr<Group> duplicate_world(Group::Options options);

}  // namespace phalanx::mpi
