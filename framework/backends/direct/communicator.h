#pragma once

#include <memory>
#include <string>
#include <vector>

#include "framework/backends/direct/collectives.h"
#include "framework/backends/direct/regions.h"
#include "framework/comm/communicator.h"
#include "framework/comm/operation_queue.h"

namespace phalanx::direct {

/// Communicator of ranks that share memory: what the backends inproc (threads) and shm (processes) have in common. They
/// differ by their Fabric alone.
///
/// Operations run in Work::wait(), in order of launch over all communicators split from one world (OperationQueue).
/// Tensors from allocate() are reduced where they lie; others go through 2 x 256 KB of scratch memory per rank.
class DirectCommunicator final : public Communicator,
                                 public AddressBook,
                                 public std::enable_shared_from_this<DirectCommunicator> {
 public:
  DirectCommunicator(std::unique_ptr<Group> group, std::shared_ptr<OperationQueue> queue);
  ~DirectCommunicator() override;

  int rank() const override { return group_->rank(); }
  int size() const override { return group_->size(); }
  const std::string& name() const override { return group_->name(); }

  Work broadcast(at::Tensor tensor, int root) override;
  Work all_reduce(at::Tensor tensor, Reduction op) override;
  Work barrier() override;
  CommunicatorPtr split(int color, int key) override;
  at::Tensor allocate(at::IntArrayRef sizes, at::TensorOptions options) override;

  // AddressBook
  Location locate(const void* begin, std::size_t bytes) const override;
  std::vector<std::byte*> addresses(const Group& group) const override;

 private:
  CommunicatorPtr split_now(int color, int key);
  std::shared_ptr<void> allocate_now(std::size_t bytes);
  template <class Run>
  void run_guarded(const Run& run);
  template <class Run>
  void run_on(const at::Tensor& tensor, const Run& run);
  template <class Run>
  void run_in_order(const Run& run);

  std::unique_ptr<Group> group_;
  std::shared_ptr<OperationQueue> queue_;
  std::shared_ptr<Regions> regions_ = std::make_shared<Regions>();
  std::uint32_t last_region_ = 0;
};

/// Connects a world: rank 0 makes the control block and passes its handle on through the store. Collective.
CommunicatorPtr connect(const std::string& backend, int rank, int size, Store& store, Seconds timeout,
                        std::unique_ptr<Fabric> fabric);

}  // namespace phalanx::direct
