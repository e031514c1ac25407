// SPDX-License-Identifier: Apache-2.0
#include "models/batch_norm.h"

#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/randn.h>
#include <gmock/gmock.h>

#include "framework/base/error.h"
#include "framework/parallel/padding_rows.h"

namespace phalanx {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(BatchNorm, OneValuePerChannelIsAnErrorOnlyInTraining) {
  BatchNorm2d norm(3);
  const at::Tensor one = at::randn({1, 3, 1, 1});
  EXPECT_THAT([&] { norm(one); }, ThrowsMessage<ConfigError>(HasSubstr("expected more than 1 value per channel")));
  EXPECT_TRUE(at::equal(norm->running_var, at::ones({3})));
  EXPECT_EQ(norm->num_batches_tracked.item<std::int64_t>(), 0);
  EXPECT_NO_THROW(norm(at::randn({1, 3, 2, 1})));
  norm->eval();
  EXPECT_NO_THROW(norm(one));
}

TEST(BatchNorm, LearnsNothingFromABatchOfPadding) {
  BatchNorm2d norm(3);
  {
    const PaddingRows padding(true);
    const at::Tensor seven = at::full({1, 3, 1, 1}, 7.0F);
    EXPECT_TRUE(at::allclose(norm(seven), seven, 1e-4)) << "normalized with the statistics as they are";
  }
  EXPECT_TRUE(at::equal(norm->running_var, at::ones({3})));
  EXPECT_EQ(norm->num_batches_tracked.item<std::int64_t>(), 0);
  norm(at::full({2, 3, 1, 1}, 7.0F));
  EXPECT_FALSE(at::equal(norm->running_var, at::ones({3})));
}

// This happens in a pipeline if the last batch has fewer samples than there are micro-batches.
TEST(BatchNorm, GradientOfPaddingIsUnaffectedByLaterBatches) {
  BatchNorm2d norm(3);
  const at::Tensor input = at::randn({1, 3, 2, 2}).requires_grad_(true);
  at::Tensor output;
  {
    const PaddingRows padding(true);
    output = norm(input);
  }
  norm(at::randn({2, 3, 2, 2}));
  output.sum().backward();
  EXPECT_TRUE(at::allclose(input.grad(), at::ones_like(input), 1e-4));
}

}  // namespace
}  // namespace phalanx
