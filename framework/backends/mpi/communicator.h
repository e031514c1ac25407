// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "framework/backends/mpi/api.h"
#include "framework/backends/mpi/group.h"
#include "framework/backends/mpi/message.h"
#include "framework/comm/communicator.h"
#include "framework/comm/operations/operation_queue.h"

namespace phalanx::mpi::inline PHALANX_MPI_BUILD {

/// A communicator over MPI. Collectives use MPI's nonblocking calls, one after the other (OperationQueue). Operations
/// that MPI does not support use direct messages over send and recv: custom reductions, and gather, scatter, all_gather
/// and reduce_scatter of more elements than an int can count.
///
/// Limitations of MPI: ranks that call different collectives are not told so. Such calls time out or give an MPI error,
/// but the memory of a rank that receives more than it has room for may be overwritten. The timeout of a collective
/// does not name the ranks that are absent. send and recv do report mismatches and name the peer.
///
/// shrink() needs ULFM (ulfm.h), and can leave out only ranks whose processes have ended (survivors.h).
class MpiCommunicator final : public Communicator, public std::enable_shared_from_this<MpiCommunicator> {
 public:
  /// `queue` belongs to all communicators of the world, and so does the inbox of `group`.
  MpiCommunicator(std::shared_ptr<Group> group, std::shared_ptr<OperationQueue> queue);

  int rank() const override { return group().rank(); }
  int size() const override { return group().size(); }
  const std::string& name() const override { return group().options().name; }

  bool takes(c10::DeviceType device) const override { return device == c10::kCPU; }

  Work launch(Operation operation) override;
  Work run(const Call& call, std::function<void()> body) override;
  CommunicatorPtr split(int color, int key) override;
  CommunicatorPtr do_shrink() override;
  std::string why_no_shrink() const override;
  bool shares_memory() const override { return size() == 1; }

  /// Allocates plain memory without synchronizing with the other ranks. MPI moves all memory at the same speed. Memory
  /// from MPI_Alloc_mem would have to be freed before MPI ends, but tensors may live longer.
  at::Tensor do_allocate(const Allocation& allocation) override;

  FlightRecorder& recorder() const override { return context_.queue->recorder(); }

 private:
  Group& group() const { return *context_.group; }
  Work launch_message(at::Tensor tensor, const Call& call);
  template <class Run>
  Work enqueue(const Call& call, Run run);
  bool is_supported_by_mpi(const Call& call) const;

  MessageContext context_;
};

/// Duplicates a communicator, so that its messages never match those of a host application. MPI must have been started
/// (runtime.h). Collective. Throws CommError.
std::shared_ptr<Group> duplicate(MPI_Comm communicator, Group::Options options);

}  // namespace phalanx::mpi::inline PHALANX_MPI_BUILD
