// SPDX-License-Identifier: Apache-2.0
// Tests fp16 and bf16.
#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <tuple>

#include "framework/collectives/testing/compression.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

using testing::gradient_of;
using testing::make_compressor;

class HalfPrecision : public ::testing::TestWithParam<std::tuple<std::string, int>> {
 protected:
  const std::string& name() const { return std::get<0>(GetParam()); }
  int ranks() const { return std::get<1>(GetParam()); }
  double share() const { return name() == "fp16" ? 0x1p-11 : 0x1p-8; }
  double least() const { return name() == "fp16" ? 0x1p-25 : 0; }
};
INSTANTIATE_TEST_SUITE_P(Ranks, HalfPrecision,
                         ::testing::Combine(::testing::Values("fp16", "bf16"), ::testing::Range(2, 6)));

// Returns magnitudes from 2^-24 to 2^7, which include the subnormal numbers of fp16.
at::Tensor wide_gradient(int rank, std::int64_t elements) {
  const at::Tensor gradient = gradient_of(rank, 0, elements);
  auto* values = gradient.mutable_data_ptr<float>();
  for (std::int64_t i = 0; i < elements; ++i) values[i] = std::ldexp(values[i], static_cast<int>(i % 32) - 24);
  return gradient;
}

TEST_P(HalfPrecision, ErrorsStayWithinTheBoundOfTheHeader) {
  testing::run_ranks("inproc", ranks(), [this](const CommunicatorPtr& group) {
    constexpr std::int64_t kSize = 5000;
    const at::Tensor tensor = wide_gradient(group->rank(), kSize);
    make_compressor(name(), {kSize})->all_reduce_mean(*group, tensor);
    at::Tensor mean = at::zeros({kSize}, at::kDouble), magnitude = at::zeros({kSize}, at::kDouble);
    for (int rank = 0; rank < ranks(); ++rank) {
      const at::Tensor gradient = wide_gradient(rank, kSize).to(at::kDouble);
      mean += gradient / ranks();
      magnitude += gradient.abs() / ranks();
    }
    const double float_rounding = 1 + 0x1p-22;
    const at::Tensor bound =
        magnitude * (std::pow(1 + share(), ranks()) * float_rounding - 1) + ranks() * least() * 1.01;
    const at::Tensor error = (tensor - mean).abs();
    EXPECT_TRUE((error <= bound).all().item<bool>()) << (error - bound).max().item<double>() << " above the bound";
    EXPECT_GT(error.max().item<double>(), 0) << "nothing was rounded";
  });
}

TEST_P(HalfPrecision, SumsMayBeLargerThanFp16) {
  testing::run_ranks("inproc", ranks(), [this](const CommunicatorPtr& group) {
    const at::Tensor tensor = at::full({3}, 60000.0F);
    make_compressor(name(), {3})->all_reduce_mean(*group, tensor);
    EXPECT_NEAR(tensor[0].item<double>(), 60000, 60000 * share() * (ranks() + 1));
  });
}

TEST(Fp16, GivesInfinityBeyondItsRange) {
  testing::run_ranks("inproc", 2, [](const CommunicatorPtr& group) {
    const at::Tensor tensor = at::full({3}, 1e6F);
    make_compressor("fp16", {3})->all_reduce_mean(*group, tensor);
    EXPECT_TRUE(std::isinf(tensor[0].item<float>()));
    const at::Tensor same = at::full({3}, 1e6F);
    make_compressor("bf16", {3})->all_reduce_mean(*group, same);
    EXPECT_NEAR(same[0].item<double>(), 1e6, 1e6 * 0x1p-7);
  });
}

}  // namespace
}  // namespace phalanx
