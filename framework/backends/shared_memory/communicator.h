// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "framework/backends/shared_memory/collectives.h"
#include "framework/backends/shared_memory/messages.h"
#include "framework/backends/shared_memory/regions.h"
#include "framework/comm/backend.h"
#include "framework/comm/communicator.h"
#include "framework/comm/operations/operation_queue.h"

namespace phalanx::shared_memory {

class AllMessages;

/// The objects that all groups of one rank share.
struct Rank {
  OperationQueue queue;
  std::shared_ptr<AllMessages> messages;
};

/// A communicator of ranks that share memory: the common part of the backends inproc (threads) and shm (processes),
/// which differ only in their Fabric.
///
/// Operations run in Work::wait(), in the order of launch over all communicators split from one world (OperationQueue),
/// or in the progress thread. Tensors from allocate() are used in place; others go through a ring of 2 MB per rank.
/// An operation may be complete on a rank that needs nothing from the others before they have come to it. If they then
/// call something else, this rank gets the mismatch from its next operation that waits for them, which is performed
/// nevertheless.
class SharedMemoryCommunicator final : public Communicator,
                                       public AddressBook,
                                       public TransferOwner,
                                       public std::enable_shared_from_this<SharedMemoryCommunicator> {
 public:
  SharedMemoryCommunicator(std::unique_ptr<Group> group, std::shared_ptr<Rank> rank);
  ~SharedMemoryCommunicator() override;

  int rank() const override { return group_->rank(); }
  int size() const override { return group_->size(); }
  const std::string& name() const override { return group_->name(); }

  bool takes(c10::DeviceType device) const override { return device == c10::kCPU; }
  bool offers(NativeWay way) const override;

  Work launch(Operation operation) override;
  Work run(const Call& call, std::function<void()> body) override;
  CommunicatorPtr split(int color, int key) override;
  CommunicatorPtr do_shrink() override;
  bool shares_memory() const override { return true; }
  at::Tensor do_allocate(const Allocation& allocation) override;
  FlightRecorder& recorder() const override { return rank_->queue.recorder(); }

  // TransferOwner:
  void await(Transfer& transfer) override;
  void abandon(Transfer& transfer) override { messages_->abandon(transfer); }

  // AddressBook:
  Location locate(const void* begin, std::size_t bytes) const override;
  Addresses addresses(const Group& group, Location Post::* which) const override;

 private:
  Work launch_message(at::Tensor tensor, const Call& call);
  template <class Run>
  Work enqueue(const Call& call, Run run);
  void execute(const Operation& operation);
  template <class Run>
  void run_guarded(const Run& run);
  template <class Run>
  void run_in_order(const Call& call, const Run& run);
  CommunicatorPtr split_now(int color, int key);
  CommunicatorPtr make_subgroup(const std::string& name, const std::vector<int>& members,
                                std::shared_ptr<void> control);
  std::shared_ptr<void> allocate_now(const Allocation& allocation);

  std::unique_ptr<Group> group_;
  std::shared_ptr<Rank> rank_;
  std::shared_ptr<FlightRecorder::Group> records_;
  std::shared_ptr<Messages> messages_;
  std::shared_ptr<Regions> regions_ = std::make_shared<Regions>();
  std::uint32_t last_region_ = 0;
};

/// Connects a world: rank 0 creates the control block and passes its handle on through the store. Collective.
CommunicatorPtr connect(const std::string& backend, const ConnectOptions& options, std::unique_ptr<Fabric> fabric);

}  // namespace phalanx::shared_memory
