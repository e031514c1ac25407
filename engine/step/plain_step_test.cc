// SPDX-License-Identifier: Apache-2.0
#include "engine/step/plain_step.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/concat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/zeros_like.h>
#include <gmock/gmock.h>

#include <memory>
#include <tuple>
#include <vector>

#include "models/model.h"

namespace phalanx {
namespace {

using ::testing::ElementsAre;

// A model without buffers.
class Plain : public Model {
 public:
  void train(bool on) override { training = on; }
  NamedTensors named_parameters() const override { return {}; }
  NamedTensors named_buffers() const override { return {}; }

  bool training = true;
};

class TwoLayers final : public Plain {
 public:
  NamedTensors named_parameters() const override { return {{"first", first}, {"second", second}}; }

  Tensors outputs(const Tensors& inputs) override {
    was_training.push_back(training);
    return {at::linear(at::tanh(at::linear(inputs.at(0), first)), second)};
  }

  at::Tensor first = at::randn({5, 4}).requires_grad_(), second = at::randn({3, 5}).requires_grad_();
  std::vector<bool> was_training;
};

class PlainSteps : public ::testing::Test {
 protected:
  Batch whole_batch() const { return {.inputs = {input_}, .targets = {target_}, .valid = kRows, .global_rows = kRows}; }

  // Returns rows [begin, end) of the batch followed by `padding` rows that would have a large loss.
  Batch share(std::int64_t begin, std::int64_t end, std::int64_t padding) const {
    return {.inputs = {at::concat({input_.slice(0, begin, end), at::full({padding, 4}, 1000.0)})},
            .targets = {at::concat({target_.slice(0, begin, end), at::full({padding}, 2, at::kLong)})},
            .valid = end - begin,
            .global_rows = kRows};
  }

  // Returns the gradients of a single backward through the mean over all rows.
  std::vector<at::Tensor> plain_gradients() {
    for (auto& parameter : model_.parameters()) parameter.mutable_grad().reset();
    loss_->mean(model_.forward(input_), target_).backward();
    return take_gradients();
  }

  std::vector<at::Tensor> take_gradients() {
    std::vector<at::Tensor> gradients;
    for (auto& parameter : model_.parameters()) {
      gradients.push_back(parameter.grad().clone());
      parameter.mutable_grad() = at::Tensor();
    }
    return gradients;
  }

  static constexpr std::int64_t kRows = 7;
  static void ignore_stages(Stage, const Step::Result&) {}

  TwoLayers model_;
  std::shared_ptr<const Loss> loss_ = Losses::Choice("cross_entropy").make();
  std::unique_ptr<Task> task_ = Tasks::Choice("classification").make(classification_samples({4}, 3), loss_);
  at::Tensor input_ = at::randn({kRows, 4});
  at::Tensor target_ = at::arange(kRows, at::kLong) % 3;
};

TEST_F(PlainSteps, GradientsEqualOneBackwardThroughTheLoss) {
  const auto expected = plain_gradients();
  const auto result = PlainStep(model_, *task_, {}).run(whole_batch(), ignore_stages);
  const auto gradients = take_gradients();
  ASSERT_EQ(gradients.size(), 2u);
  EXPECT_TRUE(at::equal(gradients[0], expected[0])) << "the same operations, so the same bits";
  EXPECT_TRUE(at::equal(gradients[1], expected[1]));
  EXPECT_TRUE(at::equal(result.loss, loss_->mean(model_.forward(input_), target_).detach()));
}

TEST_F(PlainSteps, GradientsAddUpUntilTheyAreZeroed) {
  const auto expected = plain_gradients();
  PlainStep step(model_, *task_, {});
  step.run(whole_batch(), ignore_stages);
  step.run(whole_batch(), ignore_stages);
  EXPECT_TRUE(at::allclose(take_gradients()[0], 2 * expected[0], 1e-6, 1e-7));
}

TEST_F(PlainSteps, ResultsHoldNoGraph) {
  const auto result = PlainStep(model_, *task_, {}).run(whole_batch(), ignore_stages);
  EXPECT_FALSE(result.outputs[0].requires_grad());
  EXPECT_FALSE(result.loss.requires_grad());
}

struct Share {
  std::int64_t begin, end, padding;
};

class SharesOfABatch : public PlainSteps, public ::testing::WithParamInterface<std::vector<Share>> {};

// The mean over ranks is the gradient of the mean over all samples, even if ranks have different numbers of them.
TEST_P(SharesOfABatch, MeanOverRanksIsTheGradientOfTheMeanOverTheUnion) {
  const auto expected = plain_gradients();
  const auto ranks = GetParam().size();
  std::vector<at::Tensor> sums{at::zeros_like(expected[0]), at::zeros_like(expected[1])};
  PlainStep step(model_, *task_, {.factor = static_cast<double>(ranks)});
  for (const auto& [begin, end, padding] : GetParam()) {
    step.run(share(begin, end, padding), ignore_stages);
    const auto gradients = take_gradients();
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += gradients[i];
  }
  for (std::size_t i = 0; i < sums.size(); ++i) {
    EXPECT_TRUE(at::allclose(sums[i] / static_cast<double>(ranks), expected[i], 1e-5, 1e-7)) << "parameter " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(PlainStep, SharesOfABatch,
                         ::testing::Values(std::vector<Share>{{0, 4, 0}, {4, 7, 0}},              // uneven
                                           std::vector<Share>{{0, 4, 0}, {4, 7, 1}},              // padded to be even
                                           std::vector<Share>{{0, 7, 0}, {7, 7, 1}},              // one is empty
                                           std::vector<Share>{{0, 1, 0}, {1, 6, 2}, {6, 7, 3}},   // all different
                                           std::vector<Share>{{0, 7, 3}, {7, 7, 2}, {7, 7, 1}}),  // most are empty
                         [](const auto& info) { return "Case" + std::to_string(info.index); });

TEST_F(PlainSteps, AnEmptyShareHasLossZeroAndGradientsOfZero) {
  const auto result = PlainStep(model_, *task_, {.factor = 2}).run(share(3, 3, 1), ignore_stages);
  EXPECT_EQ(result.loss.item<float>(), 0);
  for (const auto& gradient : take_gradients()) EXPECT_TRUE(at::equal(gradient, at::zeros_like(gradient)));
}

TEST_F(PlainSteps, TheLossIsTheMeanOverSamplesWithoutPadding) {
  PlainStep step(model_, *task_, {});
  const float unpadded = step.evaluate(share(0, 3, 0), ignore_stages).loss.item<float>();
  // A product with more rows may be rounded differently.
  EXPECT_FLOAT_EQ(step.evaluate(share(0, 3, 2), ignore_stages).loss.item<float>(), unpadded);
  EXPECT_FLOAT_EQ(step.run(share(0, 3, 2), ignore_stages).loss.item<float>(), unpadded);
  EXPECT_EQ(step.evaluate(share(3, 3, 1), ignore_stages).loss.item<float>(), 0);
}

TEST_F(PlainSteps, EvaluationLeavesNoGradients) {
  const auto result = PlainStep(model_, *task_, {}).evaluate(whole_batch(), ignore_stages);
  for (const auto& parameter : model_.parameters()) EXPECT_FALSE(parameter.grad().defined());
  EXPECT_FALSE(result.outputs[0].requires_grad());
  EXPECT_FALSE(result.loss.requires_grad());
}

TEST_F(PlainSteps, TheModelIsInTrainingOrEvaluationMode) {
  PlainStep step(model_, *task_, {});
  step.run(whole_batch(), ignore_stages);
  step.evaluate(whole_batch(), ignore_stages);
  step.run(whole_batch(), ignore_stages);
  EXPECT_THAT(model_.was_training, ElementsAre(true, false, true));
}

TEST_F(PlainSteps, HalfPrecisionFollowsAndLossesStayFloat32) {
  const auto expected = plain_gradients();
  for (const auto dtype : {at::kBFloat16, at::kHalf}) {
    PlainStep step(model_, *task_, {.arithmetic = {.dtype = dtype}});
    const auto result = step.run(whole_batch(), ignore_stages);
    EXPECT_EQ(result.outputs[0].scalar_type(), at::kFloat);
    EXPECT_EQ(result.loss.scalar_type(), at::kFloat);
    EXPECT_TRUE(at::equal(result.outputs[0], result.outputs[0].to(dtype).to(at::kFloat))) << "computed with fewer bits";
    const auto gradients = take_gradients();
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      EXPECT_EQ(gradients[i].scalar_type(), at::kFloat);
      EXPECT_FALSE(at::equal(gradients[i], expected[i]));
      EXPECT_LT((gradients[i] - expected[i]).norm().item<float>(), 0.02F * expected[i].norm().item<float>());
    }
    EXPECT_EQ(step.evaluate(whole_batch(), ignore_stages).outputs[0].scalar_type(), at::kFloat);
  }
}

TEST_F(PlainSteps, TheLossScaleIsOnlyInTheGradientsAndReadInEveryStep) {
  const auto expected = plain_gradients();
  at::Tensor scale = at::full({}, 1024);
  PlainStep step(model_, *task_, {.arithmetic = {.loss_scale = scale}});
  const auto loss = step.run(whole_batch(), ignore_stages).loss;
  EXPECT_TRUE(at::equal(take_gradients()[0], expected[0] * 1024)) << "a power of two changes no bit";
  EXPECT_TRUE(at::equal(loss, PlainStep(model_, *task_, {}).evaluate(whole_batch(), ignore_stages).loss));
  scale.fill_(2);
  step.run(whole_batch(), ignore_stages);
  EXPECT_TRUE(at::equal(take_gradients()[1], expected[1] * 2));
}

// Returns images as rows, and records their memory layout.
class Pictures final : public Plain {
 public:
  Tensors outputs(const Tensors& inputs) override {
    const at::Tensor& input = inputs.at(0);
    channels_last.push_back(input.is_contiguous(at::MemoryFormat::ChannelsLast));
    return {input.mean({2, 3})};
  }
  std::vector<bool> channels_last;
};

TEST_F(PlainSteps, ImagesHaveTheRequestedMemoryFormat) {
  Pictures pictures;
  const Batch batch{
      .inputs = {at::randn({kRows, 3, 4, 4})}, .targets = {target_}, .valid = kRows, .global_rows = kRows};
  PlainStep(pictures, *task_, {}).evaluate(batch, ignore_stages);
  PlainStep(pictures, *task_, {.arithmetic = {.images = at::MemoryFormat::ChannelsLast}})
      .evaluate(batch, ignore_stages);
  EXPECT_THAT(pictures.channels_last, ElementsAre(false, true));
}

// A stage, and three flags: output, loss and the parameters' gradients exist at that point.
using Seen = std::tuple<Stage, bool, bool, bool>;

TEST_F(PlainSteps, StagesAreReportedInOrderWithTheResultsSoFar) {
  std::vector<Seen> seen;
  const Step::Watch watch = [&](Stage stage, const Step::Result& result) {
    seen.emplace_back(stage, !result.outputs.empty(), result.loss.defined(), model_.first.grad().defined());
  };
  PlainStep step(model_, *task_, {});
  step.run(whole_batch(), watch);
  EXPECT_THAT(
      seen, ElementsAre(Seen{Stage::kForward, true, false, false}, Seen{Stage::kForwardCriterion, true, true, false},
                        Seen{Stage::kBackwardCriterion, true, true, false}, Seen{Stage::kBackward, true, true, true}));
  take_gradients();
  seen.clear();
  step.evaluate(whole_batch(), watch);
  EXPECT_THAT(
      seen, ElementsAre(Seen{Stage::kForward, true, false, false}, Seen{Stage::kForwardCriterion, true, true, false}));
}

}  // namespace
}  // namespace phalanx
