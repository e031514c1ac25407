// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "framework/comm/decorator.h"

namespace phalanx::hybrid {

/// A group of a hybrid world that lies on one host. Its collectives run on `host`, which has the same ranks in the same
/// order, but they are ordered with the other operations of the world. Messages and barriers use the world.
class HostCommunicator final : public Decorator {
 public:
  HostCommunicator(CommunicatorPtr inner, CommunicatorPtr host);

  bool takes(c10::DeviceType device) const override { return Decorator::takes(device) && host_->takes(device); }
  Work launch(Operation operation) override;
  CommunicatorPtr split(int color, int key) override;
  CommunicatorPtr do_shrink() override;
  std::string why_no_shrink() const override;
  bool shares_memory() const override { return host_->shares_memory(); }
  at::Tensor do_allocate(const Allocation& allocation) override;

 protected:
  CommunicatorPtr wrap(CommunicatorPtr child) override;

 private:
  CommunicatorPtr host_;
};

/// Calls host.split(color, key), ordered with the other operations of `world`.
CommunicatorPtr split_in_order(Communicator& world, Communicator& host, int color, int key);

}  // namespace phalanx::hybrid
