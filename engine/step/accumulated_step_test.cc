// SPDX-License-Identifier: Apache-2.0
#include "engine/step/accumulated_step.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <gmock/gmock.h>

#include <tuple>
#include <vector>

namespace phalanx {
namespace {

using ::testing::ElementsAre;

// The number of rows, and how many of them are samples.
using Part = std::tuple<std::int64_t, std::int64_t>;

// Returns its input as output, and the mean of it as the loss.
class Recorder final : public Step {
 public:
  Result run(const Batch& batch, const Watch& watch) override {
    parts.emplace_back(batch.inputs[0].size(0), batch.valid);
    const at::Tensor& input = batch.inputs[0];
    const Result result{.outputs = {input},
                        .loss = batch.valid == 0 ? at::full({}, 0.0) : input.narrow(0, 0, batch.valid).mean(),
                        .weight = batch.weight()};
    watch(Stage::kForward, result);
    return result;
  }
  Result evaluate(const Batch&, const Watch&) override { return {}; }

  std::vector<Part> parts;
};

Step::Result run(Recorder& step, std::int64_t rows, std::int64_t valid, std::int64_t parts, bool always_all = false) {
  const auto values = at::arange(rows, at::kFloat);
  return AccumulatedStep(step, parts, always_all)
      .run({.inputs = {values}, .targets = {values}, .valid = valid, .global_rows = 100},
           [](Stage, const Step::Result&) {});
}

TEST(AccumulatedStep, PartsAreNearlyEqualAndCoverTheBatch) {
  Recorder step;
  const auto result = run(step, 7, 7, 3);
  EXPECT_THAT(step.parts, ElementsAre(Part{2, 2}, Part{2, 2}, Part{3, 3}));
  EXPECT_TRUE(at::equal(result.outputs[0], at::arange(7, at::kFloat)));
  EXPECT_FLOAT_EQ(result.loss.item<float>(), 3) << "the mean of 0 to 6";
}

TEST(AccumulatedStep, PaddingIsInTheLastParts) {
  Recorder step;
  run(step, 6, 3, 3);
  EXPECT_THAT(step.parts, ElementsAre(Part{2, 2}, Part{2, 1}, Part{2, 0}));
}

// Ranks that communicate in every part must have equal numbers of parts.
TEST(AccumulatedStep, FewerRowsThanPartsArePaddedIfAllPartsAreNeeded) {
  Recorder step;
  const auto result = run(step, 2, 2, 4, /*always_all=*/true);
  EXPECT_THAT(step.parts, ElementsAre(Part{1, 0}, Part{1, 1}, Part{1, 0}, Part{1, 1}));
  EXPECT_TRUE(at::equal(result.outputs[0], at::arange(2, at::kFloat))) << "without the padding";
  EXPECT_FLOAT_EQ(result.loss.item<float>(), 0.5);
}

// Batch norm would include padding in its statistics.
TEST(AccumulatedStep, FewerRowsThanPartsMakeFewerPartsOtherwise) {
  Recorder step;
  run(step, 2, 2, 4);
  EXPECT_THAT(step.parts, ElementsAre(Part{1, 1}, Part{1, 1}));
}

TEST(AccumulatedStep, EachStageIsReportedOnce) {
  Recorder step;
  std::vector<Stage> seen;
  const auto values = at::arange(4, at::kFloat);
  AccumulatedStep(step, 2, false)
      .run({.inputs = {values}, .targets = {values}, .valid = 4, .global_rows = 4},
           [&](Stage stage, const Step::Result&) { seen.push_back(stage); });
  EXPECT_THAT(seen,
              ElementsAre(Stage::kForward, Stage::kForwardCriterion, Stage::kBackwardCriterion, Stage::kBackward));
}

}  // namespace
}  // namespace phalanx
