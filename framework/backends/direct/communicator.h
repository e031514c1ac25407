#pragma once

#include <memory>
#include <string>
#include <vector>

#include "framework/backends/direct/collectives.h"
#include "framework/backends/direct/messages.h"
#include "framework/backends/direct/regions.h"
#include "framework/comm/backend.h"
#include "framework/comm/communicator.h"
#include "framework/comm/operation_queue.h"

namespace phalanx::direct {

class AllMessages;

/// What the groups of one rank have in common.
struct Rank {
  OperationQueue queue;
  std::shared_ptr<AllMessages> messages;
};

/// Communicator of ranks that share memory: what the backends inproc (threads) and shm (processes) have in common. They
/// differ by their Fabric alone.
///
/// Operations run in Work::wait(), in order of launch over all communicators split from one world (OperationQueue), or
/// in the progress thread. Tensors from allocate() are moved where they lie; others go through 2 x 256 KB of scratch
/// memory per rank.
class DirectCommunicator final : public Communicator,
                                 public AddressBook,
                                 public std::enable_shared_from_this<DirectCommunicator> {
 public:
  DirectCommunicator(std::unique_ptr<Group> group, std::shared_ptr<Rank> rank);
  ~DirectCommunicator() override;

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
  at::Tensor allocate(at::IntArrayRef sizes, at::TensorOptions options) override;
  bool shares_memory() const override { return true; }
  at::Tensor allocate_shared(at::IntArrayRef sizes, at::TensorOptions options) override;
  const FlightRecorder& recorder() const override { return rank_->queue.recorder(); }

  // AddressBook
  Location locate(const void* begin, std::size_t bytes) const override;
  Addresses addresses(const Group& group, Location Post::*which) const override;

 private:
  struct Tensors;

  template <class Run>
  Work launch(const Call& call, at::Tensor output, at::Tensor input, Run run);
  template <class Run>
  void run_guarded(const Run& run);
  template <class Run>
  void run_in_order(const Call& call, const Run& run);
  CommunicatorPtr split_now(int color, int key);
  at::Tensor allocate_in_order(at::IntArrayRef sizes, at::TensorOptions options, bool shared);
  std::shared_ptr<void> allocate_now(std::size_t bytes, bool shared);
  std::shared_ptr<Transfer> transfer(at::Tensor tensor, const Call& call);

  std::unique_ptr<Group> group_;
  std::shared_ptr<Rank> rank_;
  std::shared_ptr<FlightRecorder::Group> records_;
  std::shared_ptr<Messages> messages_;
  std::shared_ptr<Regions> regions_ = std::make_shared<Regions>();
  std::uint32_t last_region_ = 0;
};

/// Connects a world: rank 0 makes the control block and passes its handle on through the store. Collective.
CommunicatorPtr connect(const std::string& backend, const World& world, std::unique_ptr<Fabric> fabric);

}  // namespace phalanx::direct
