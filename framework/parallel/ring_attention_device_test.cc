// SPDX-License-Identifier: Apache-2.0
// Compares ring attention on devices with the attention of one process that has the whole sequence. The devices are
// fake; their kernels refuse the same arguments as LibTorch's kernels for CUDA.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <vector>

#include "framework/comm/device_kind.h"
#include "framework/parallel/ring_attention.h"
#include "framework/partition/sequence_shard.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

constexpr std::int64_t kLength = 24;

at::Tensor values(int which, std::int64_t width, c10::ScalarType dtype, std::int64_t heads = 3) {
  const auto count = 2 * heads * kLength * width;
  return ((at::arange(count, at::kDouble) * (0.61 + 0.17 * which)).sin() * 1.5)
      .view({2, heads, kLength, width})
      .to(dtype);
}

double distance(const at::Tensor& got, const at::Tensor& expected) {
  return (got.to(at::kCPU).to(at::kDouble) - expected).abs().max().item<double>();
}

void check(int ranks, std::int64_t width, c10::ScalarType dtype, double tolerance, std::int64_t key_heads = 3) {
  testing::run_ranks("inproc", ranks, [&](const CommunicatorPtr& world) {
    const c10::Device device(c10::kCUDA, static_cast<c10::DeviceIndex>(world->rank()));
    c10::impl::VirtualGuardImpl(c10::kCUDA).setDevice(device);
    const auto group = DeviceKinds::Choice("fake").make()->connect(world->split(0, world->rank()), device, Seconds(60));
    std::vector<at::Tensor> whole, part;
    for (int i = 0; i < 3; ++i) {
      const at::Tensor all = values(i, width, dtype, i == 0 ? 3 : key_heads);
      whole.push_back(all.to(at::kDouble).requires_grad_());
      part.push_back(shard_sequence(all, 2, *world).to(device).requires_grad_());
    }
    const at::Tensor upstream = values(3, width, dtype);
    const at::Tensor expected =
        at::scaled_dot_product_attention(whole[0], whole[1], whole[2], {}, 0, true, {}, /*enable_gqa=*/true);
    const auto wanted = torch::autograd::grad({expected}, {whole[0], whole[1], whole[2]}, {upstream.to(at::kDouble)});

    const at::Tensor output = ring_attention(part[0], part[1], part[2], group);
    const auto got =
        torch::autograd::grad({output}, {part[0], part[1], part[2]}, {shard_sequence(upstream, 2, *world).to(device)});
    EXPECT_EQ(output.scalar_type(), dtype);
    EXPECT_LT(distance(output, shard_sequence(expected, 2, *world)), tolerance);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_LT(distance(got[i], shard_sequence(wanted[i], 2, *world)), 4 * tolerance) << "gradient " << i;
    }
  });
}

TEST(RingAttentionOnDevices, MatchesAttentionInOneProcessInEveryDtype) {
  for (const int ranks : {1, 2, 3}) {
    check(ranks, 8, at::kDouble, 1e-12);
    check(ranks, 8, at::kFloat, 1e-5);
    check(ranks, 8, at::kBFloat16, 5e-2);
    check(ranks, 8, at::kHalf, 1e-2);
  }
}

// Flash attention reads the head in place, and the other kernels get copies of it.
TEST(RingAttentionOnDevices, TakesHeadsThatQueriesShare) {
  check(2, 8, at::kBFloat16, 5e-2, 1);
  check(2, 8, at::kFloat, 1e-5, 1);
  check(2, 8, at::kDouble, 1e-12, 1);
}

TEST(RingAttentionOnDevices, TakesHeadsThatFlashAttentionRefuses) { check(2, 6, at::kBFloat16, 5e-2); }

}  // namespace
}  // namespace phalanx
