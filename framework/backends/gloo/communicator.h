// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "framework/backends/gloo/group.h"
#include "framework/backends/gloo/messages.h"
#include "framework/comm/communicator.h"
#include "framework/comm/operations/operation_queue.h"

namespace phalanx::gloo {

/// A communicator over TCP that uses Gloo. Collectives run in the OperationQueue of the world, in wait() or in its
/// progress thread. Each world has one thread of Gloo, which moves the messages.
///
/// Collectives that Gloo supports use Gloo (collectives.h). reduce_scatter, small reduces and reductions that are not
/// commutative use framework/collectives/direct.h, over messages.
///
/// shrink() lets only one side go on if ranks cannot reach each other (survivors.h). It takes no longer than two
/// timeouts for a rank that is left behind.
///
/// Limitation: ranks that call different operations time out instead of getting kMismatch.
class GlooCommunicator final : public Communicator, public std::enable_shared_from_this<GlooCommunicator> {
 public:
  GlooCommunicator(std::shared_ptr<Group> group, std::shared_ptr<OperationQueue> queue);

  int rank() const override { return group_->rank(); }
  int size() const override { return group_->size(); }
  const std::string& name() const override { return group_->name(); }

  bool takes(c10::DeviceType device) const override { return device == c10::kCPU; }

  Work launch(Operation operation) override;
  Work run(const Call& call, std::function<void()> body) override;
  CommunicatorPtr split(int color, int key) override;
  CommunicatorPtr do_shrink() override;
  bool shares_memory() const override { return size() == 1; }

  /// Allocates plain memory without synchronizing with the other ranks, because TCP moves all memory at the same speed.
  at::Tensor do_allocate(const Allocation& allocation) override;

  FlightRecorder& recorder() const override { return queue_->recorder(); }

 private:
  void execute(const Operation& operation);
  template <class Run>
  Work enqueue(const Call& call, Run run);
  CommunicatorPtr split_now(int color, int key);

  std::shared_ptr<Group> group_;
  std::shared_ptr<OperationQueue> queue_;
  std::shared_ptr<FlightRecorder::Group> record_;
  std::shared_ptr<Messages> messages_;
};

}  // namespace phalanx::gloo
