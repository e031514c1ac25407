#pragma once

#include <memory>
#include <string>

#include "framework/backends/mpi/group.h"
#include "framework/comm/communicator.h"

namespace phalanx::mpi {

/// Communicator over MPI. Operations are MPI's nonblocking collectives; wait() drives them, see Group.
///
/// What MPI cannot do: ranks that call different operations are not told so (kMismatch); such calls time out or end
/// with what MPI makes of them. A timeout does not name the ranks that are absent.
class MpiCommunicator final : public Communicator {
 public:
  explicit MpiCommunicator(std::shared_ptr<Group> group) : group_(std::move(group)) {}

  int rank() const override { return group_->rank(); }
  int size() const override { return group_->size(); }
  const std::string& name() const override { return group_->options().name; }

  Work broadcast(at::Tensor tensor, int root) override;
  Work all_reduce(at::Tensor tensor, Reduction op) override;
  Work barrier() override;
  CommunicatorPtr split(int color, int key) override;

  /// Plain memory, and without meeting the other ranks: MPI moves all memory alike, while memory of MPI_Alloc_mem would
  /// have to be given back before MPI ends, and tensors may live longer.
  at::Tensor allocate(at::IntArrayRef sizes, at::TensorOptions options) override;

 private:
  std::shared_ptr<Group> group_;
};

/// The world on a communicator of its own, so that it does not meet messages of a host application. MPI must have been
/// started (runtime.h). Collective; throws CommError.
std::shared_ptr<Group> duplicate_world(Group::Options options);

}  // namespace phalanx::mpi
