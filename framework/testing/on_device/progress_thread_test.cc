// SPDX-License-Identifier: Apache-2.0
// Operations of devices that a progress thread carries out.
#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "framework/backends/device/device_communicator.h"
#include "framework/comm/decorator.h"
#include "framework/testing/fake_device/contexts.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

// Waits for a thread.
class Joined final : public Work::State {
 public:
  explicit Joined(std::thread thread) : thread_(std::move(thread)) {}
  ~Joined() override { wait(); }
  void wait() override {
    if (thread_.joinable()) thread_.join();
  }
  bool done() const override { return !thread_.joinable(); }

 private:
  std::thread thread_;
};

// Runs bodies in another thread, and ends them there, after the launch has returned.
class InThread final : public Decorator {
 public:
  using Decorator::Decorator;
  Work run(const Call& call, std::function<void()> body) override {
    return Work(std::make_shared<Joined>(std::thread([call, inner = inner(), body = std::move(body)]() mutable {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      inner->run(call, std::exchange(body, nullptr)).wait();
    })));
  }

 protected:
  CommunicatorPtr wrap(CommunicatorPtr child) override { return std::make_shared<InThread>(std::move(child)); }
};

TEST(ProgressThread, OpensNoContextOfOtherDevicesThanTheRanksOwn) {
  testing::forget_contexts();
  testing::run_ranks("inproc", 2, [](const CommunicatorPtr& world) {
    const c10::Device device(c10::kCUDA, static_cast<c10::DeviceIndex>(5 + world->rank()));
    c10::impl::VirtualGuardImpl(c10::kCUDA).setDevice(device);
    DeviceCommunicator group(std::make_shared<InThread>(world), c10::kCUDA);
    const at::Tensor tensor = at::full({10}, 1.0, at::device(device));
    group.all_reduce(tensor, Reduction::kSum).wait();
    EXPECT_EQ(tensor[9].item<float>(), 2);
  });
  for (c10::DeviceIndex device = 0; device < 8; ++device) {
    EXPECT_EQ(testing::has_context(device), device == 5 || device == 6) << static_cast<int>(device);
  }
}

}  // namespace
}  // namespace phalanx
