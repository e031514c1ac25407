// SPDX-License-Identifier: Apache-2.0
// Tests siamese. goldens/make_siamese.py writes siamese.golden and describes its contents.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <gmock/gmock.h>

#include <cmath>
#include <string>
#include <vector>

#include "engine/task/task.h"
#include "framework/base/error.h"
#include "tests/zoo/golden.h"
#include "tests/zoo/model_under_test.h"

namespace phalanx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::make_model;
using ::testing::ThrowsMessage;

// `shape` begins with the number of members.
SampleSpec samples(std::vector<std::int64_t> shape) {
  const auto members = shape.front();
  return {.inputs = {{.name = "input", .shape = std::move(shape)}},
          .targets = {{.name = "classes", .shape = {members}, .dtype = at::kLong, .classes = 3}},
          .task = "metric_learning"};
}

class GoldenSiamese : public ::testing::TestWithParam<testing::GoldenLine> {};
INSTANTIATE_TEST_SUITE_P(Lines, GoldenSiamese, ::testing::ValuesIn(testing::golden_lines("tests/zoo/siamese.golden")));

TEST_P(GoldenSiamese, ComputesAndLearnsAsPyTorch) {
  const auto& golden = GetParam();
  const auto shape = golden.integers(2);
  const auto sample = samples({shape.begin() + 1, shape.end()});
  const auto task = Tasks::Choice(sample.task).make(sample, nullptr);
  const auto model = make_model(golden.text(1), sample);
  EXPECT_EQ(testing::parameters_of(*model), golden.integers(3).at(0));
  testing::fill(*model);
  const auto near = [](double expected) { return ::testing::DoubleNear(expected, 2e-5 * (0.05 + std::abs(expected))); };
  const auto inputs = testing::waves(shape);
  const auto i = at::arange(shape[0] * shape[1], at::kLong);
  const Batch batch{.inputs = {inputs}, .targets = {((7 * i + i.div(3, "floor")) % 3).view({shape[0], shape[1]})}};
  const auto embeddings = model->forward(inputs);
  const auto expected = golden.values(4);
  EXPECT_THAT(embeddings[0][0][0].item<double>(), near(expected.at(0)));
  EXPECT_THAT(embeddings[0][1][-1].item<double>(), near(expected.at(1)));
  EXPECT_THAT(embeddings[-1][-1][-1].item<double>(), near(expected.at(2)));
  const auto loss = task->mean_loss({embeddings}, batch);
  EXPECT_THAT(loss.item<double>(), near(golden.value(5)));
  loss.backward();
  const at::NoGradGuard no_grad;
  for (auto& parameter : model->parameters()) parameter.sub_(parameter.grad(), 0.1);
  EXPECT_THAT(task->mean_loss({model->forward(inputs)}, batch).item<double>(), near(golden.value(6)));
}

TEST(Siamese, HasOneEncoderForAllMembers) {
  const auto pairs = make_model("siamese", samples({2, 1, 28, 28}));
  EXPECT_THAT(testing::names_of(*pairs), ElementsAre("conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias",
                                                     "fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"));
  const auto triplets = make_model("siamese", samples({3, 1, 28, 28}));
  EXPECT_EQ(testing::layout_of(*pairs), testing::layout_of(*triplets));
  const auto x = testing::waves({4, 2, 1, 28, 28}), swapped = x.flip(1);
  const auto there = pairs->forward(x), back = pairs->forward(swapped).flip(1);
  EXPECT_LT((there - back).abs().max().item<double>(), 1e-6);
  EXPECT_LT((there.norm(2, 2) - 1).abs().max().item<double>(), 1e-5) << "embeddings have length 1";
}

TEST(Siamese, RefusesOtherSamples) {
  EXPECT_THAT([] { make_model("siamese", classification_samples({1, 28, 28}, 10)); },
              ThrowsMessage<ConfigError>(HasSubstr("gives an embedding of each member")));
  EXPECT_THAT([] { make_model("siamese", samples({2, 5})); },
              ThrowsMessage<ConfigError>(HasSubstr("at least 4 x 4 pixels, or channels: []")));
  EXPECT_THAT([] { make_model("siamese", samples({2, 1, 3, 28})); },
              ThrowsMessage<ConfigError>(HasSubstr("at least 4 x 4 pixels")));
}

}  // namespace
}  // namespace phalanx
