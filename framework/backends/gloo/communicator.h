#pragma once

#include <memory>
#include <string>

#include "framework/backends/gloo/group.h"
#include "framework/backends/gloo/messages.h"
#include "framework/collectives/algorithm.h"
#include "framework/comm/communicator.h"
#include "framework/comm/operation_queue.h"

namespace phalanx::gloo {

/// Communicator over TCP, by Gloo. Collectives run in the OperationQueue of the world, in wait() or in its progress
/// thread; messages are moved by Gloo's thread, of which a world has one.
///
/// What Gloo has is Gloo's (collectives.h); reduce_scatter, small reduces, and reductions that are not commutative, are
/// those of framework/collectives/direct.h, over messages.
///
/// What it cannot do: ranks that call different operations are not told so (kMismatch), but time out.
class GlooCommunicator final : public Communicator, public std::enable_shared_from_this<GlooCommunicator> {
 public:
  GlooCommunicator(std::shared_ptr<Group> group, std::shared_ptr<OperationQueue> queue);

  int rank() const override { return group_->rank(); }
  int size() const override { return group_->size(); }
  const std::string& name() const override { return group_->name(); }

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

  /// Plain memory, and without meeting the other ranks: TCP moves all memory alike.
  at::Tensor allocate(at::IntArrayRef sizes, at::TensorOptions options) override;
  bool shares_memory() const override { return size() == 1; }
  at::Tensor allocate_shared(at::IntArrayRef sizes, at::TensorOptions options) override;

  const FlightRecorder& recorder() const override { return queue_->recorder(); }

 private:
  template <class Collective>
  Work launch(const Call& call, Arguments arguments, Collective collective);
  CommunicatorPtr split_now(int color, int key);

  std::shared_ptr<Group> group_;
  std::shared_ptr<OperationQueue> queue_;
  std::shared_ptr<FlightRecorder::Group> record_;
  std::shared_ptr<Messages> messages_;
};

}  // namespace phalanx::gloo
