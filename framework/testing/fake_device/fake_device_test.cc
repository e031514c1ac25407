// SPDX-License-Identifier: Apache-2.0
#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <thread>

#include "framework/testing/fake_device/graph.h"
#include "framework/testing/fake_device/memory.h"
#include "framework/testing/fake_device/streams.h"

namespace phalanx::testing {
namespace {

const at::Device kDevice(c10::kCUDA, 0);

at::Tensor network(const at::Tensor& image, const at::Tensor& kernel, const at::Tensor& weight) {
  return at::linear(at::max_pool2d(at::conv2d(image, kernel).relu(), 2).flatten(1), weight).square().sum();
}

TEST(FakeDevice, ComputesForwardAndBackwardLikeTheCpu) {
  // Whole numbers, whose convolution is exact: rounding decides neither about relu nor about the largest element.
  const at::Tensor image = at::randint(-3, 4, {3, 2, 8, 8}, at::kFloat),
                   kernel = at::randint(-3, 4, {4, 2, 3, 3}, at::kFloat),
                   weight = at::randint(-3, 4, {5, 36}, at::kFloat);
  at::globalContext().setAllowTF32CuDNN(false);
  std::vector<at::Tensor> results, gradients;
  for (const at::Device device : {at::Device(at::kCPU), kDevice}) {
    const at::Tensor own_kernel = kernel.clone().to(device).requires_grad_(),
                     own_weight = weight.clone().to(device).requires_grad_();
    const at::Tensor result = network(image.to(device), own_kernel, own_weight);
    EXPECT_EQ(result.device(), device);
    result.backward();
    results.push_back(result.to(at::kCPU));
    gradients.push_back(own_kernel.grad().to(at::kCPU));
  }
  at::globalContext().setAllowTF32CuDNN(true);
  EXPECT_TRUE(at::allclose(results[0], results[1], 1e-4, 1e-5));
  EXPECT_TRUE(at::allclose(gradients[0], gradients[1], 1e-4, 1e-5));
}

TEST(FakeDevice, RunsBackwardInAThreadOfTheDeviceLikeAGpu) {
  const at::Tensor x = at::ones({2}, at::device(kDevice)).requires_grad_();
  std::thread::id thread;
  x.register_hook([&](const at::Tensor&) { thread = std::this_thread::get_id(); });
  x.sum().backward();
  EXPECT_NE(thread, std::this_thread::get_id());
}

// LibTorch rounds the factors of convolutions by default, and those of matrix products if it is told to.
TEST(FakeDevice, RoundsFactorsToTf32IfLibTorchLetsAGpuDoSo) {
  const at::Tensor image = at::rand({2, 3, 9, 9}), kernel = at::rand({4, 3, 3, 3}), matrix = at::rand({30, 30});
  const auto difference = [](const at::Tensor& there, const at::Tensor& here) {
    return (there.to(at::kCPU) - here).abs().max().item<float>();
  };
  const auto of_convolution = [&] {
    return difference(at::conv2d(image.to(kDevice), kernel.to(kDevice)), at::conv2d(image, kernel));
  };
  const auto of_product = [&] {
    return difference(at::mm(matrix.to(kDevice), matrix.to(kDevice)), at::mm(matrix, matrix));
  };
  at::Context& context = at::globalContext();
  EXPECT_GT(of_convolution(), 1e-5);
  EXPECT_LT(of_product(), 1e-5);
  context.setAllowTF32CuDNN(false);
  context.setAllowTF32CuBLAS(true);
  EXPECT_LT(of_convolution(), 1e-5);
  EXPECT_GT(of_product(), 1e-5);
  context.setAllowTF32CuDNN(true);
  context.setAllowTF32CuBLAS(false);
}

TEST(FakeDevice, RefusesToMixDevices) {
  const at::Tensor here = at::ones({2}), there = at::ones({2}, at::device(kDevice));
  EXPECT_THAT([&] { (void)(here + there); }, ::testing::Throws<c10::Error>());
  EXPECT_NO_THROW((void)(there + at::ones({})));
}

TEST(FakeDevice, RefusesOperatorsThatAGpuLacks) {
  const at::Tensor there = at::ones({1, 1, 4, 8}, at::device(kDevice));
  EXPECT_THAT([&] { at::_scaled_dot_product_flash_attention_for_cpu(there, there, there); },
              ::testing::Throws<c10::NotImplementedError>(::testing::Property(
                  &c10::Error::what, ::testing::HasSubstr("LibTorch for CUDA has no kernel for it"))));
}

TEST(FakeDevice, MemoryIsUninitializedAndNotReadableByTheCpu) {
  const at::Tensor there = at::empty({2}, at::device(kDevice));
  EXPECT_DEATH(std::printf("%f", *there.data_ptr<float>()), "");
  EXPECT_TRUE(there.isnan().all().item<bool>());
}

TEST(FakeDevice, MultipliesByTheReciprocalOfANumber) {
  const at::Tensor here = at::arange(1, 100, at::kFloat), there = here.to(kDevice);
  EXPECT_FALSE(at::equal((there / 3).to(at::kCPU), here / 3));
  EXPECT_TRUE(at::equal((there / 3).to(at::kCPU), here * (1.0F / 3)));
  EXPECT_TRUE(at::equal((there / at::full({}, 3, there.options())).to(at::kCPU), here / 3));
}

TEST(FakeDevice, CountsItsMemory) {
  const at::Device device(c10::kCUDA, 3);
  const auto allocated = [&] { return fake_memory().getDeviceStats(device.index()).allocated_bytes[0]; };
  {
    const at::Tensor large = at::ones({1 << 20}, at::device(device));
    EXPECT_EQ(allocated().current, 4 << 20);
  }
  EXPECT_EQ(allocated().current, 0);
  EXPECT_EQ(allocated().peak, 4 << 20);
}

// Work on streams of the device.
class FakeStreams : public ::testing::Test {
 protected:
  FakeStreams() : first_(new_stream()), second_(new_stream()) {}
  ~FakeStreams() override {
    Streams::global().set_mode(Streams::Mode::kEager);
    Streams::global().synchronize_device(kDevice.index());
  }

  static c10::Stream new_stream() { return c10::impl::VirtualGuardImpl(c10::kCUDA).getStreamFromGlobalPool(kDevice); }
  static void synchronize(const c10::Stream& stream) {
    c10::impl::VirtualGuardImpl(c10::kCUDA).synchronizeStream(stream);
  }

  const c10::Stream first_, second_;
};

TEST_F(FakeStreams, AMissingWaitThrowsAndNamesBothOperators) {
  at::Tensor tensor;
  {
    const c10::StreamGuard guard(first_);
    tensor = at::full({100}, 2.0, at::device(kDevice));
  }
  const c10::StreamGuard guard(second_);
  EXPECT_THAT([&] { (void)(tensor + 1); },
              ::testing::ThrowsMessage<MissingWait>(
                  ::testing::AllOf(::testing::HasSubstr("aten::add"), ::testing::HasSubstr("aten::fill_"))));
  c10::Event event(c10::kCUDA);
  event.record(first_);
  event.block(second_);
  EXPECT_NO_THROW((void)(tensor + 1));
}

TEST_F(FakeStreams, ADifferentPartOfATensorNeedsNoWait) {
  at::Tensor tensor = at::ones({10, 10}, at::device(kDevice));
  synchronize(c10::impl::VirtualGuardImpl(c10::kCUDA).getStream(kDevice));
  {
    const c10::StreamGuard guard(first_);
    tensor[3].fill_(2);
  }
  const c10::StreamGuard guard(second_);
  EXPECT_NO_THROW(tensor[4].fill_(3));
  EXPECT_THROW(tensor[3].fill_(3), MissingWait);
}

// Uses a tensor of the first stream on the second one, and then allocates as much on the first one again.
void reuse_memory(const c10::Stream& first, const c10::Stream& second, bool recorded) {
  c10::Event written(c10::kCUDA);
  const c10::StreamGuard guard(first);
  at::Tensor tensor = at::ones({3000}, at::device(kDevice));
  written.record(first);
  {
    const c10::StreamGuard later(second);
    written.block(second);
    (void)tensor.sum();
  }
  if (recorded) tensor.record_stream(second);
  const void* const address = tensor.const_data_ptr();
  tensor.reset();
  EXPECT_EQ(at::ones({3000}, at::device(kDevice)).const_data_ptr(), address);
}

TEST_F(FakeStreams, FreedMemoryOfAnotherStreamNeedsRecordStream) {
  EXPECT_THROW(reuse_memory(first_, second_, false), MissingWait);
  EXPECT_NO_THROW(reuse_memory(new_stream(), new_stream(), true));
}

TEST_F(FakeStreams, CopiesFromAndToPinnedMemoryArePendingUntilTheyAreWaitedFor) {
  const c10::StreamGuard guard(first_);
  const at::Tensor pinned = at::full({8}, 1.0).pin_memory(),
                   back = at::empty({8}, at::device(at::kCPU).pinned_memory(true));
  ASSERT_TRUE(pinned.is_pinned());
  const at::Tensor there = pinned.to(kDevice, /*non_blocking=*/true);
  pinned.fill_(5);  // too early
  EXPECT_TRUE(at::equal(there.to(at::kCPU), at::full({8}, 5.0)));
  at::Tensor(back).copy_(there, /*non_blocking=*/true);
  EXPECT_TRUE(back.isnan().all().item<bool>());
  synchronize(first_);
  EXPECT_TRUE(at::equal(back, at::full({8}, 5.0)));
}

TEST_F(FakeStreams, CopiesFromOtherMemoryOfTheHostReadItAtOnce) {
  const at::Tensor host = at::full({8}, 1.0);
  const at::Tensor there = host.to(kDevice, /*non_blocking=*/true);
  host.fill_(5);
  EXPECT_TRUE(at::equal(there.to(at::kCPU), at::full({8}, 1.0)));
}

// In a random order, which respects events, the results are those of the order in which the host launches the work.
TEST_F(FakeStreams, ComputeTheSameDeferred) {
  const at::Tensor image = at::randint(-3, 4, {3, 2, 8, 8}, at::kFloat),
                   kernel = at::randint(-3, 4, {4, 2, 3, 3}, at::kFloat),
                   weight = at::randint(-3, 4, {5, 36}, at::kFloat);
  const at::Tensor expected = network(image, kernel, weight);
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    Streams::global().set_mode(Streams::Mode::kDeferred, seed);
    at::Tensor kernel_there, result;
    c10::Event copied(c10::kCUDA);
    {
      const c10::StreamGuard guard(first_);
      kernel_there = kernel.to(kDevice).mul(2).requires_grad_();
      copied.record(first_);
    }
    const c10::StreamGuard guard(second_);
    copied.block(second_);
    result = network(image.to(kDevice), kernel_there.div(2), weight.to(kDevice));
    result.backward();
    EXPECT_TRUE(at::allclose(result.to(at::kCPU), expected)) << seed;
    EXPECT_FALSE(kernel_there.grad().isnan().any().item<bool>());
  }
}

// Without a wait, a deferred operator reads memory that was never written.
TEST_F(FakeStreams, ComputeSomethingElseDeferredIfAWaitIsMissing) {
  int wrong = 0;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    Streams::global().set_mode(Streams::Mode::kDeferred, seed);
    std::array<float, 100> to{};
    std::array<float, 100> from{};
    const auto number = [](const c10::Stream& stream) {
      return Streams::global().number_of(stream.device_index(), stream.id());
    };
    Streams::global().launch({.name = "fill", .stream = number(first_), .accesses = {}}, [&] { from.fill(1); });
    Streams::global().launch({.name = "copy", .stream = number(second_), .accesses = {}}, [&] { to = from; });
    Streams::global().synchronize_device(kDevice.index());
    wrong += to[0] == 1 ? 0 : 1;
  }
  EXPECT_GT(wrong, 0);
}

TEST(FakeGraphs, AreRecordedOnStreamsOfAPoolOnly) {
  EXPECT_THAT([] { FakeGraph().capture_begin(); }, ::testing::Throws<c10::Error>());
}

TEST_F(FakeStreams, AGraphHasItsOwnMemoryAndKeepsTheCacheAsItIs) {
  const c10::StreamGuard guard(first_);
  const void* const cached = at::ones({5000}, at::device(kDevice)).const_data_ptr();
  FakeGraph graph;
  graph.capture_begin();
  EXPECT_NE(at::ones({5000}, at::device(kDevice)).const_data_ptr(), cached);
  EXPECT_THROW(fake_memory().emptyCache({0, 0}), c10::Error);
  graph.capture_end();
  EXPECT_EQ(at::ones({5000}, at::device(kDevice)).const_data_ptr(), cached);
}

TEST_F(FakeStreams, TheMemoryOfAGraphCountsAndTheCacheIsNotFreedForIt) {
  const auto eight_megabytes = [] { return at::ones({2 << 20}, at::device(kDevice)); };
  const auto reserved = [] { return fake_memory().getDeviceStats(kDevice.index()).reserved_bytes[0].current; };
  const c10::StreamGuard guard(first_);
  (void)eight_megabytes();  // cached
  const auto [free, total] = fake_memory().getMemoryInfo(kDevice.index());
  limit_fake_memory(total - free + (5 << 20));
  FakeGraph graph;
  graph.capture_begin();
  EXPECT_THROW((void)eight_megabytes(), c10::OutOfMemoryError);
  const std::int64_t before = reserved();
  const at::Tensor small = at::ones({1 << 18}, at::device(kDevice));
  EXPECT_EQ(reserved(), before + (1 << 20));
  graph.capture_end();
  {
    const c10::StreamGuard other(second_);
    EXPECT_NO_THROW((void)eight_megabytes());
  }
  limit_fake_memory(0);
}

// The graph keeps the tensors of the operators that it has recorded; no operator uses these.
TEST_F(FakeStreams, AGraphDoesNotReuseMemoryThatAnotherStreamUses) {
  const c10::StreamGuard guard(first_);
  const auto make = [] { return at::empty({3000}, at::device(kDevice)); };
  FakeGraph graph;
  graph.capture_begin();
  at::Tensor tensor = make();
  const void* const first = tensor.const_data_ptr();
  tensor.reset();
  tensor = make();
  EXPECT_EQ(tensor.const_data_ptr(), first);
  tensor.record_stream(second_);
  tensor.reset();
  EXPECT_NE(make().const_data_ptr(), first);
  graph.capture_end();
}

TEST_F(FakeStreams, AThreadThatRecordsCannotWaitForTheDevice) {
  const c10::impl::VirtualGuardImpl devices(c10::kCUDA);
  const c10::StreamGuard guard(first_);
  c10::Event event(c10::kCUDA);
  event.record(second_);
  FakeGraph graph;
  graph.capture_begin();
  EXPECT_THROW(devices.synchronizeDevice(kDevice.index()), c10::Error);
  EXPECT_THROW(devices.synchronizeStream(second_), c10::Error);
  EXPECT_THROW((void)devices.queryStream(second_), c10::Error);
  EXPECT_THROW(event.synchronize(), c10::Error);
  EXPECT_THROW((void)event.query(), c10::Error);
  std::thread([&] { EXPECT_NO_THROW(synchronize(second_)); }).join();
  graph.capture_end();
  EXPECT_TRUE(event.query());
}

TEST_F(FakeStreams, AReplayIsOrderedLikeOtherWork) {
  FakeGraph graph;
  at::Tensor tensor;
  {
    const c10::StreamGuard guard(first_);
    tensor = at::ones({10}, at::device(kDevice));
    graph.capture_begin();
    tensor.add_(1);
    graph.capture_end();
    graph.replay();
    graph.replay();
  }
  const c10::StreamGuard guard(second_);
  EXPECT_THROW((void)(tensor + 1), MissingWait);
  synchronize(first_);
  EXPECT_TRUE(at::equal(tensor.to(at::kCPU), at::full({10}, 3.0)));
}

}  // namespace
}  // namespace phalanx::testing
