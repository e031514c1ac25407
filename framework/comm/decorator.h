// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "framework/comm/communicator.h"

namespace phalanx {

/// A communicator that passes all calls on to another. It is the base class of communicators that change a few
/// operations.
///
/// A subclass that replaces an operation launches its own code as a body of inner().run(), so that it keeps its place
/// in the order. Groups that are split from it are decorated by wrap().
class Decorator : public Communicator {
 public:
  explicit Decorator(CommunicatorPtr inner) : inner_(std::move(inner)) {}

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  const std::string& name() const override { return inner_->name(); }
  bool takes(c10::DeviceType device) const override { return inner_->takes(device); }

  bool offers(NativeWay way) const override { return inner_->offers(way); }

  Work launch(Operation operation) override { return inner_->launch(std::move(operation)); }
  Work run(const Call& call, std::function<void()> body) override { return inner_->run(call, std::move(body)); }
  CommunicatorPtr split(int color, int key) override {
    auto child = inner_->split(color, key);
    return child ? wrap(std::move(child)) : nullptr;
  }
  std::string why_no_shrink() const override { return inner_->why_no_shrink(); }
  CommunicatorPtr do_shrink() override { return wrap(inner_->do_shrink()); }
  bool shares_memory() const override { return inner_->shares_memory(); }
  at::Tensor do_allocate(const Allocation& allocation) override { return inner_->do_allocate(allocation); }
  FlightRecorder& recorder() const override { return inner_->recorder(); }

 protected:
  const CommunicatorPtr& inner() const { return inner_; }

  /// Decorates a group that was split from inner() in the same way.
  virtual CommunicatorPtr wrap(CommunicatorPtr child) = 0;

 private:
  CommunicatorPtr inner_;
};

}  // namespace phalanx
