// SPDX-License-Identifier: Apache-2.0
// Tests the option `compression:` of strategies.
#include "engine/strategies/gradient_group.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "engine/testing/strategy.h"
#include "framework/base/error.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

using testing::gather;
using ::testing::HasSubstr;
using testing::load_strategy;
using testing::make_strategy;
using testing::run_ranks;
using ::testing::ThrowsMessage;

// Returns two buckets: a matrix with its bias, and a long vector.
FlatParameters make_matrix_and_vector(Communicator& group, at::ScalarType dtype = at::kFloat) {
  std::vector<at::Tensor> parameters;
  for (const auto& shape : std::vector<std::vector<std::int64_t>>{{500}, {40}, {40, 30}}) {
    parameters.push_back(at::zeros(shape, dtype).requires_grad_());
  }
  return FlatParameters(std::move(parameters), group, 4900);
}

class Compression : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Names, Compression,
                         ::testing::Values("none", "fp16", "bf16", "int8", "int4", "topk", "powersgd", "one_bit"));

TEST(CompressionOption, HasEveryCompression) {
  EXPECT_THAT(Compressors::global().names(),
              ::testing::ElementsAre("bf16", "fp16", "int4", "int8", "none", "one_bit", "powersgd", "topk"));
}

TEST_P(Compression, AllReduceGivesAllRanksTheSameBits) {
  run_ranks("inproc", 3, [](const CommunicatorPtr& group) {
    const auto parameters = make_matrix_and_vector(*group);
    const auto strategy = make_strategy("{name: all_reduce, compression: " + GetParam() + "}", group);
    const auto slices = strategy->attach(parameters, Cut::kAnywhere);
    ASSERT_EQ(slices.size(), 2u);
    for (int step = 0; step < 3; ++step) {
      for (const auto& slice : slices) slice.gradients.copy_(at::full_like(slice.gradients, 0.1 * group->rank() + 1));
      strategy->before_update(step);
      for (const auto& slice : slices) {
        const at::Tensor all = gather(slice.gradients, *group);
        for (int rank = 0; rank < group->size(); ++rank) EXPECT_TRUE(at::equal(all[rank], all[0]));
      }
    }
    strategy->finish();
  });
}

TEST(CompressionOption, FieldsOfTheCompressionAreInTheConfig) {
  const auto dumped = [](const char* yaml) { return config::dump_as("strategy", load_strategy(yaml)); };
  EXPECT_THAT(dumped("{name: all_reduce, compression: {name: powersgd, rank: 7}}"),
              HasSubstr("compression:\n    name: powersgd\n    rank: 7\n"));
  EXPECT_THAT(dumped("all_reduce"), HasSubstr("compression:\n    name: none\n"));
  EXPECT_THAT(
      [] { load_strategy("{name: all_reduce, compression: powersdg}"); },
      ThrowsMessage<ConfigError>(HasSubstr("strategy.compression: unknown name \"powersdg\"; known: bf16, fp16, "
                                           "int4, int8, none, one_bit, powersgd, topk (did you mean \"powersgd\"?)")));
  EXPECT_THAT([] { load_strategy("{name: all_reduce, compression: {name: powersgd, rank: 0}}"); },
              ThrowsMessage<ConfigError>(HasSubstr("strategy.compression.rank: must be between 1 and 1024, got 0")));
}

TEST(CompressionOption, BucketsHaveTheShapesOfTheirParameters) {
  run_ranks("inproc", 2, [](const CommunicatorPtr& group) {
    const auto parameters = make_matrix_and_vector(*group);
    GradientGroup gradients(group, Compressors::Choice("powersgd"));
    gradients.attach(parameters);
    for (const auto& bucket : parameters.buckets()) gradients.all_reduce_mean(bucket.gradients).wait();
    // Factors of rank 2 of the [40, 30] matrix, and the vectors uncompressed, padded to cache lines.
    EXPECT_EQ(gradients.traffic().sent_bytes, 4 * (40 * 2 + 48 + 30 * 2 + 512));
    EXPECT_EQ(gradients.traffic().uncompressed_bytes, 4 * (40 * 30 + 48 + 512));
    gradients.attach(parameters);
    EXPECT_EQ(gradients.traffic().reductions, 0) << "attaching again starts over";
  });
}

// Tasks that train in turns have such buckets.
TEST(CompressionOption, ABucketWithoutGradientsKeepsItsResidual) {
  run_ranks("inproc", 2, [](const CommunicatorPtr& group) {
    const auto parameters = make_matrix_and_vector(*group);
    GradientGroup gradients(group, Compressors::Choice("int8"));
    gradients.attach(parameters);
    const auto& bucket = parameters.buckets()[0];
    const auto reduce = [&](double value) {
      for (std::int64_t i = 0; i < bucket.gradients.numel(); ++i) {
        bucket.gradients[i] = value * static_cast<double>(i + group->rank());
      }
      gradients.all_reduce_mean(bucket.gradients).wait();
    };
    const auto residuals = [&] {
      std::vector<at::Tensor> all;
      for (const auto& one : gradients.state()) all.push_back(one.values.clone());
      return all;
    };
    const at::NoGradGuard no_grad;
    reduce(0.37);
    const auto before = residuals();
    const auto sent = gradients.traffic().reductions;
    for (at::Tensor parameter : bucket.parameters) parameter.set_requires_grad(false);
    bucket.gradients.zero_();
    gradients.all_reduce_mean(bucket.gradients).wait();
    EXPECT_EQ(bucket.gradients.abs().max().item<float>(), 0);
    EXPECT_EQ(gradients.traffic().reductions, sent);
    const auto after = residuals();
    ASSERT_EQ(after.size(), before.size());
    for (std::size_t i = 0; i < after.size(); ++i) EXPECT_TRUE(at::equal(after[i], before[i])) << i;
    for (at::Tensor parameter : bucket.parameters) parameter.set_requires_grad(true);
    reduce(0.53);
    EXPECT_EQ(gradients.traffic().reductions, sent + 1);
  });
}

TEST(CompressionOption, NoneReducesWithTheGroupDirectly) {
  run_ranks("inproc", 2, [](const CommunicatorPtr& group) {
    const auto parameters = make_matrix_and_vector(*group, at::kDouble);
    GradientGroup gradients(group, Compressors::Choice("none"));
    gradients.attach(parameters);
    const at::Tensor& bucket = parameters.buckets()[0].gradients;
    bucket.fill_(0.1 * (group->rank() + 1));
    gradients.all_reduce_mean(bucket).wait();
    EXPECT_DOUBLE_EQ(bucket[0].item<double>(), 0.15);
    EXPECT_EQ(gradients.traffic().reductions, 0);
  });
}

TEST(CompressionOption, RefusesGradientsThatAreNotFloat32) {
  run_ranks("inproc", 2, [](const CommunicatorPtr& group) {
    const auto parameters = make_matrix_and_vector(*group, at::kDouble);
    GradientGroup gradients(group, Compressors::Choice("fp16"));
    EXPECT_THAT([&] { gradients.attach(parameters); },
                ThrowsMessage<ConfigError>(HasSubstr(
                    "strategy.compression: fp16 is for gradients of Float, not of Double; use compression: none")));
  });
}

TEST(CompressionOption, AStrategyReportsWhatItSent) {
  run_ranks("inproc", 2, [](const CommunicatorPtr& group) {
    const auto parameters = make_matrix_and_vector(*group);
    for (const char* name : {"all_reduce", "overlapped", "sharded"}) {
      const auto strategy = make_strategy(std::string("{name: ") + name + ", compression: fp16}", group);
      strategy->attach(parameters, Cut::kAnywhere);
      for (int step = 0; step < 5; ++step) strategy->before_update(step);
      strategy->finish();
      EXPECT_EQ(
          strategy->metrics(),
          (Metrics{{"reductions", 10}, {"sent_bytes", 17600}, {"uncompressed_bytes", 35200}, {"compression_ratio", 2}}))
          << name;
    }
    const auto plain = make_strategy("all_reduce", group);
    plain->attach(parameters, Cut::kAnywhere);
    EXPECT_EQ(plain->metrics(), Metrics());
  });
}

}  // namespace
}  // namespace phalanx
