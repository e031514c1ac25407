// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "framework/backends/nccl/group.h"
#include "framework/backends/nccl/plugin.h"
#include "framework/comm/communicator.h"

namespace phalanx::nccl {

/// Communicator of NCCL: takes tensors of CUDA devices, in the operations that has_native() names, and is the native
/// half of a DeviceCommunicator, which has all others. Operations run on a stream of the group's own.
class NcclCommunicator final : public Communicator {
 public:
  explicit NcclCommunicator(std::shared_ptr<Group> group) : group_(std::move(group)) {}

  int rank() const override { return group_->member().rank; }
  int size() const override { return group_->member().size; }
  const std::string& name() const override { return group_->member().group; }
  bool takes(c10::DeviceType device) const override { return device == c10::kCUDA; }

  Work launch(Operation operation) override;
  Work run(const Call& call, std::function<void()> body) override;  // std::logic_error: the host's
  CommunicatorPtr split(int color, int key) override;               // ncclCommSplit
  CommunicatorPtr shrink() override { refuse_shrink("nccl"); }
  bool shares_memory() const override { return size() == 1; }

  /// Memory from ncclMemAlloc, registered with this communicator, so that devices read and write it without copies.
  at::Tensor do_allocate(const Allocation& allocation) override;

  const FlightRecorder& recorder() const override { return *group_->recorder(); }

 private:
  std::shared_ptr<Group> group_;
};

/// Collective. Null where nothing is made, see ConnectRequest.
CommunicatorPtr connect(const ConnectRequest& request);

}  // namespace phalanx::nccl
