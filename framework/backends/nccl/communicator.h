// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "framework/backends/nccl/group.h"
#include "framework/backends/nccl/plugin.h"
#include "framework/comm/communicator.h"

namespace phalanx::nccl {

/// A communicator over NCCL. It supports tensors on CUDA devices in the operations for which has_native() is true. It
/// is the native group of a DeviceCommunicator, which handles all other operations. Each group runs its operations on
/// its own stream.
class NcclCommunicator final : public Communicator {
 public:
  explicit NcclCommunicator(std::shared_ptr<Group> group) : group_(std::move(group)) {}

  int rank() const override { return group_->member().rank; }
  int size() const override { return group_->member().size; }
  const std::string& name() const override { return group_->member().group; }
  bool takes(c10::DeviceType device) const override { return device == c10::kCUDA; }

  Work launch(Operation operation) override;
  // Throws std::logic_error: bodies run in the host's group.
  Work run(const Call& call, std::function<void()> body) override;
  CommunicatorPtr split(int color, int key) override;  // calls ncclCommSplit
  std::string why_no_shrink() const override { return cannot_shrink("nccl"); }
  bool shares_memory() const override { return size() == 1; }

  /// Allocates memory with ncclMemAlloc and registers it with this communicator, so that devices read and write it
  /// without copies.
  at::Tensor do_allocate(const Allocation& allocation) override;

  FlightRecorder& recorder() const override { return *group_->recorder(); }

 private:
  std::shared_ptr<Group> group_;
};

/// Connects a group. Collective. Returns null if two ranks share a device and the request allows that; see
/// ConnectRequest.
CommunicatorPtr connect(const ConnectRequest& request);

}  // namespace phalanx::nccl
