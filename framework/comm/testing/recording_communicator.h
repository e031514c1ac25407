// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ops/zeros.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "framework/comm/communicator.h"

namespace phalanx::testing {

/// A communicator that only remembers the last operation it was asked for: one rank of a group without other ranks.
class RecordingCommunicator final : public Communicator {
 public:
  RecordingCommunicator(int rank, int size, c10::DeviceType device = c10::kCPU)
      : rank_(rank), size_(size), device_(device) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  const std::string& name() const override { return name_; }
  bool takes(c10::DeviceType device) const override { return device == device_; }

  bool offers(NativeWay way) const override { return way != NativeWay::kTwoShot; }

  Work launch(Operation operation) override {
    launched_ = std::move(operation);
    return Work();
  }
  Work run(const Call& call, std::function<void()> body) override {
    launched_ = Operation{.call = call};
    body();
    return Work();
  }
  CommunicatorPtr split(int color, int key) override {
    return color < 0 ? nullptr : std::make_shared<RecordingCommunicator>(key, size_, device_);
  }
  CommunicatorPtr do_shrink() override { return std::make_shared<RecordingCommunicator>(rank_, size_, device_); }
  bool shares_memory() const override { return true; }
  at::Tensor do_allocate(const Allocation& allocation) override {
    launched_ = Operation{.call = allocation.call};
    return at::zeros(allocation.sizes, allocation.options);
  }
  FlightRecorder& recorder() const override { return recorder_; }

  /// Returns the last operation since the previous call of this function.
  std::optional<Operation> launched() { return std::exchange(launched_, std::nullopt); }

 private:
  int rank_, size_;
  c10::DeviceType device_;
  std::string name_ = "recording";
  std::optional<Operation> launched_;
  mutable FlightRecorder recorder_;
};

}  // namespace phalanx::testing
