#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "framework/backends/mpi/group.h"
#include "framework/backends/mpi/message.h"
#include "framework/backends/mpi/operation.h"
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

  Work broadcast(at::Tensor tensor, int root) override;
  Work reduce(at::Tensor tensor, Reduction op, int root) override;
  Work all_reduce(at::Tensor tensor, Reduction op) override;
  Work reduce_scatter(at::Tensor output, at::Tensor input, Reduction op, Counts counts) override;
  Work all_gather(at::Tensor output, at::Tensor input, Counts counts) override;
  Work gather(at::Tensor output, at::Tensor input, int root, Counts counts) override;
  Work scatter(at::Tensor output, at::Tensor input, int root, Counts counts) override;
  Work all_to_all(at::Tensor output, at::Tensor input, Counts output_counts, Counts input_counts) override;
  Work send(at::Tensor tensor, int peer, int tag) override;
  Work recv(at::Tensor tensor, int peer, int tag) override;
  Work barrier(std::optional<Seconds> timeout) override;
  Work run(const Call& call, std::function<void()> body) override;
  CommunicatorPtr split(int color, int key) override;

  /// Plain memory, and without meeting the other ranks: MPI moves all memory alike, while memory of MPI_Alloc_mem would
  /// have to be given back before MPI ends, and tensors may live longer.
  at::Tensor allocate(at::IntArrayRef sizes, at::TensorOptions options) override;
  bool shares_memory() const override { return size() == 1; }
  at::Tensor allocate_shared(at::IntArrayRef sizes, at::TensorOptions options) override;

  const FlightRecorder& recorder() const override { return postbox_.queue->recorder(); }

 private:
  using ByMpi = void (*)(Operation&);
  using Directly = void (*)(Communicator&, const Arguments&);

  Group& group() const { return *postbox_.group; }

  /// `directly` is taken where MPI cannot; null where it always can.
  Work launch(const Call& call, Arguments arguments, ByMpi by_mpi, Directly directly = nullptr);
  Work launch_directly(const Call& call, Arguments arguments, Directly directly);
  bool can_by_mpi(const Call& call) const;

  Postbox postbox_;
};

/// The world on a communicator of its own, so that it does not meet messages of a host application. MPI must have been
/// started (runtime.h). Collective; throws CommError.
std::shared_ptr<Group> duplicate_world(Group::Options options);

}  // namespace phalanx::mpi
