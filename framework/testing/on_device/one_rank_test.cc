// SPDX-License-Identifier: Apache-2.0
// Groups of devices with one rank.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "framework/backends/device/device_communicator.h"
#include "framework/comm/decorator.h"
#include "framework/comm/device_kind.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

// Counts the operations on tensors that are passed to the host's group.
class Counting final : public Decorator {
 public:
  Counting(CommunicatorPtr inner, std::shared_ptr<int> launched)
      : Decorator(std::move(inner)), launched_(std::move(launched)) {}
  Work launch(Operation operation) override {
    ++*launched_;
    return Decorator::launch(std::move(operation));
  }

 protected:
  CommunicatorPtr wrap(CommunicatorPtr child) override {
    return std::make_shared<Counting>(std::move(child), launched_);
  }

 private:
  std::shared_ptr<int> launched_;
};

TEST(OneRank, CopiesWithinItsDevice) {
  testing::run_ranks("inproc", 1, [](const CommunicatorPtr& world) {
    const c10::Device device(c10::kCUDA, 0);
    const auto launched = std::make_shared<int>(0);
    const auto group =
        DeviceKinds::Choice("fake").make()->connect(std::make_shared<Counting>(world, launched), device, Seconds(30));
    const int before = *launched;
    const at::Tensor values = at::arange(6, at::device(device).dtype(at::kFloat)),
                     output = at::zeros({6}, values.options());
    const auto expect_copied = [&] {
      EXPECT_TRUE(at::equal(output.to(at::kCPU), at::arange(6).to(at::kFloat)));
      output.zero_();
    };
    group->all_gather(output, values).wait();
    expect_copied();
    group->reduce_scatter(output, values, Reduction::kMean).wait();
    expect_copied();
    group->all_to_all(output, values).wait();
    expect_copied();
    group->gather(output, values, 0).wait();
    expect_copied();
    group->scatter(output, values, 0).wait();
    expect_copied();
    group->all_reduce(values, Reduction::kSum).wait();
    group->broadcast(values, 0).wait();
    EXPECT_TRUE(at::equal(values.to(at::kCPU), at::arange(6).to(at::kFloat)));
    EXPECT_EQ(*launched, before);
    const auto alone = group->split(0, 0);
    alone->all_gather(output, values).wait();
    expect_copied();
    EXPECT_EQ(*launched, before);
  });
}

}  // namespace
}  // namespace phalanx
