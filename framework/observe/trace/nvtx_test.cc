// SPDX-License-Identifier: Apache-2.0
#include "framework/observe/trace/nvtx.h"

#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <torch/csrc/profiler/stubs/base.h>

#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/observe/trace/named_range.h"

namespace phalanx {
namespace {

// A replacement for the functions that LibTorch for CUDA registers.
struct Recorded final : torch::profiler::impl::ProfilerStubs {
  void record(c10::DeviceIndex*, torch::profiler::impl::ProfilerVoidEventStub*, std::int64_t*) const override {}
  float elapsed(const torch::profiler::impl::ProfilerVoidEventStub*,
                const torch::profiler::impl::ProfilerVoidEventStub*) const override {
    return 0;
  }
  void mark(const char*) const override {}
  void rangePush(const char* name) const override { ranges.push_back(name); }
  void rangePop() const override { ranges.push_back("end"); }
  bool enabled() const override { return true; }
  void onEachDevice(std::function<void(int)>) const override {}
  void synchronize() const override {}

  mutable std::vector<std::string> ranges;
};

TEST(Nvtx, NamesOperatorsAndRangesWhileItLivesAndIsRefusedWithoutCuda) {
  EXPECT_THAT([] { NvtxRanges(); }, ::testing::ThrowsMessage<ConfigError>(::testing::HasSubstr("watch.nvtx")));
  static auto& cuda = *new Recorded;  // LibTorch keeps a pointer to it
  torch::profiler::impl::registerCUDAMethods(&cuda);
  {
    const NvtxRanges ranges;
    NamedRange range;
    range.begin("forward");
    (void)at::ones({1}).neg();
    range.end();
  }
  (void)at::ones({1}).neg();
  EXPECT_EQ(cuda.ranges.front(), "forward");
  EXPECT_EQ(cuda.ranges.back(), "end");
  EXPECT_EQ(std::ranges::count(cuda.ranges, "aten::neg"), 1);
  EXPECT_EQ(std::ranges::count(cuda.ranges, "end") * 2, std::ssize(cuda.ranges));
}

}  // namespace
}  // namespace phalanx
