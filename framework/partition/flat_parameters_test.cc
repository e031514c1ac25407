// SPDX-License-Identifier: Apache-2.0
#include "framework/partition/flat_parameters.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

at::Tensor parameter(at::IntArrayRef sizes) { return at::rand(sizes).requires_grad_(); }

void with_memory(const testing::RankBody& body) { testing::run_ranks("inproc", 1, body); }

TEST(FlatParameters, MovesParametersIntoBucketsLastLayerFirst) {
  with_memory([](const CommunicatorPtr& memory) {
    const std::vector<at::Tensor> parameters{parameter({16, 3}), parameter({16}), parameter({32, 4}), parameter({32})};
    const auto before = parameters[2].detach().clone();
    const FlatParameters flat(parameters, *memory, (32 + 128) * sizeof(float));
    ASSERT_EQ(flat.buckets().size(), 2u);
    EXPECT_EQ(flat.buckets()[0].values.numel(), 32 + 128) << "the last layer's weight and bias";
    EXPECT_EQ(flat.buckets()[1].values.numel(), 16 + 48);
    EXPECT_TRUE(at::equal(parameters[2].detach(), before)) << "values survive the move";
    EXPECT_EQ(parameters[3].data_ptr(), flat.buckets()[0].values.data_ptr());
  });
}

TEST(FlatParameters, EachBeginsWithACacheLine) {
  with_memory([](const CommunicatorPtr& memory) {
    const std::vector<at::Tensor> parameters{parameter({3}), parameter({4, 4}), parameter({17}), parameter({})};
    const FlatParameters flat(parameters, *memory, 1 << 20);
    const auto& bucket = flat.buckets().at(0);
    EXPECT_EQ(bucket.values.numel(), 16 + 32 + 16 + 16);
    for (const auto& each : parameters) {
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(each.data_ptr()) % 64, 0u);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(each.grad().data_ptr()) % 64, 0u);
    }
    EXPECT_FLOAT_EQ(bucket.values.detach().abs().sum().item<float>(),
                    parameters[0].sum().item<float>() + parameters[1].sum().item<float>() +
                        parameters[2].sum().item<float>() + parameters[3].item<float>())
        << "zeros between them";
  });
}

TEST(FlatParameters, ParametersAndGradientsAreViewsOfTheBuckets) {
  with_memory([](const CommunicatorPtr& memory) {
    const std::vector<at::Tensor> parameters{parameter({3}), parameter({2})};
    const FlatParameters flat(parameters, *memory, 1 << 20);
    ASSERT_EQ(flat.buckets().size(), 1u);
    const auto& bucket = flat.buckets()[0];
    bucket.values.fill_(5);
    EXPECT_EQ(parameters[0].detach()[2].item<float>(), 5);
    (parameters[0] * parameters[0]).sum().backward();
    EXPECT_EQ(bucket.gradients[bucket.segments[1].begin].item<float>(), 10)
        << "backward accumulates into the bucket, without a copy";
    EXPECT_EQ(bucket.gradients[0].item<float>(), 0);
  });
}

TEST(FlatParameters, ParametersKeepTheirStrides) {
  with_memory([](const CommunicatorPtr& memory) {
    const at::Tensor values = at::rand({4, 3, 2, 2}).contiguous(at::MemoryFormat::ChannelsLast);
    const at::Tensor weight = values.clone().requires_grad_(), first = parameter({5});
    const FlatParameters flat(std::vector{first, weight}, *memory, 1 << 20);
    EXPECT_TRUE(weight.is_contiguous(at::MemoryFormat::ChannelsLast));
    EXPECT_TRUE(weight.grad().is_contiguous(at::MemoryFormat::ChannelsLast));
    EXPECT_TRUE(at::equal(weight.detach(), values));
    const auto& bucket = flat.buckets()[0];
    EXPECT_TRUE(at::equal(bucket.values.narrow(0, 0, 48), values.permute({0, 2, 3, 1}).flatten())) << "channels last";
    EXPECT_TRUE(at::equal(view_of(bucket.values, bucket.segments[0]), values));
    EXPECT_TRUE(at::equal(view_of(bucket.values, bucket.segments[1]), first.detach()));

    view_values(bucket, bucket.values.clone());
    EXPECT_TRUE(at::equal(weight.detach(), values)) << "elsewhere";
    EXPECT_TRUE(weight.is_contiguous(at::MemoryFormat::ChannelsLast));
  });
}

// A tensor that is expanded or not dense does not have separate memory for each of its elements.
TEST(FlatParameters, ParametersWithHolesAreMadeDense) {
  with_memory([](const CommunicatorPtr& memory) {
    const at::Tensor all = at::rand({4, 6});
    const at::Tensor every_other = all.slice(1, 0, 6, 2).detach().requires_grad_();
    const FlatParameters flat(std::vector{every_other}, *memory, 1 << 20);
    EXPECT_TRUE(every_other.is_contiguous());
    EXPECT_TRUE(at::equal(every_other.detach(), all.slice(1, 0, 6, 2)));
  });
}

TEST(FlatParameters, CanBeDividedIntoEqualParts) {
  with_memory([](const CommunicatorPtr& memory) {
    const NamedTensors parameters{{"a", parameter({20})}, {"b", parameter({70})}, {"c", parameter({40})}};
    const FlatParameters flat(parameters, *memory, 1 << 20, /*parts=*/3);
    const auto& bucket = flat.buckets().at(0);
    EXPECT_EQ(bucket.values.numel(), 192) << "48 + 80 + 32 elements, up to a multiple of 3 times 16";
    EXPECT_EQ(bucket.gradients.numel(), 192);
    EXPECT_EQ(bucket.values.narrow(0, 160, 32).count_nonzero().item<std::int64_t>(), 0);
  });
}

TEST(FlatParameters, RefusesAMixtureOfDtypes) {
  with_memory([](const CommunicatorPtr& memory) {
    const std::vector<at::Tensor> parameters{parameter({3}), at::ones({2}, at::kDouble).requires_grad_()};
    EXPECT_THROW(FlatParameters(parameters, *memory, 1 << 20), std::invalid_argument);
  });
}

}  // namespace
}  // namespace phalanx
