// SPDX-License-Identifier: Apache-2.0
#include "engine/task/task.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>

#include <set>

#include "framework/base/config/config.h"
#include "framework/base/error.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;
using Shape = std::vector<std::int64_t>;

std::unique_ptr<Task> make(const std::string& name, const SampleSpec& sample, const std::string& loss = "auto") {
  return Tasks::Choice(name).make(sample, Losses::Choice(loss).make());
}

// Returns samples that are suitable for each task.
SampleSpec sample_for(const std::string& task) {
  const TensorSpec image{.name = "image", .shape = {3, 4, 5}};
  if (task == "regression") return {{image}, {{.name = "y", .shape = {2}}}, task};
  if (task == "binary_classification") return {{image}, {{.name = "click"}}, task};
  if (task == "ranking") return {{image}, {{.name = "relevance", .shape = {7}}}, task};
  if (task == "reconstruction") return {{image}, {}, task};
  if (task == "segmentation") {
    return {{image}, {{.name = "classes", .shape = {4, 5}, .dtype = at::kLong, .classes = 6, .ignored = true}}, task};
  }
  if (task == "metric_learning") {
    return {{image}, {{.name = "classes", .shape = {2}, .dtype = at::kLong, .classes = 6}}, task};
  }
  if (task == "variational" || task == "adversarial") return {{image, {.name = "noise", .shape = {2}}}, {}, task};
  if (task.ends_with("language_modelling")) return language_samples(4, 6, /*padded=*/true);
  return classification_samples({3, 4, 5}, 6);
}

// Returns a batch prepared by the task, with random inputs and with all targets equal to `target`.
Batch batch_for(const Task& task, const SampleSpec& sample, std::int64_t rows, std::int64_t target) {
  Batch batch{.valid = rows, .global_rows = rows};
  const auto with_rows = [rows](Shape shape) {
    shape.insert(shape.begin(), rows);
    return shape;
  };
  for (const auto& input : sample.inputs) {
    batch.inputs.push_back(at::randn(with_rows(input.shape)).to(input.dtype));
  }
  for (const auto& spec : sample.targets) {
    batch.targets.push_back(at::full(with_rows(spec.shape), target, spec.dtype));
  }
  task.prepare(batch);
  return batch;
}

class EveryTask : public ::testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Registered, EveryTask, ::testing::ValuesIn(Tasks::global().names()),
                         [](const auto& info) { return info.param; });

TEST_P(EveryTask, ItsDefaultLossAndMetersTakeWhatItAsksOfModels) {
  const auto sample = sample_for(GetParam());
  const auto task = make(GetParam(), sample);
  Tensors outputs;
  for (const auto& spec : task->model().outputs) {
    auto shape = spec.shape;
    shape.insert(shape.begin(), 5);
    outputs.push_back(at::randn(shape).requires_grad_());
  }
  const Batch batch = batch_for(*task, sample, 5, 1);
  const Tensors predictions = task->predictions(outputs);
  const at::Tensor loss = task->mean_loss(predictions, batch);
  EXPECT_EQ(loss.dim(), 0);
  loss.backward();
  EXPECT_TRUE(outputs.at(0).grad().ne(0).any().item<bool>());

  MeterSet meters(task->meters());
  meters.add(batch, {.outputs = {predictions.at(0).detach()}, .loss = loss.detach(), .weight = batch.weight()});
  std::set<std::string> names;
  testing::run_ranks("inproc", 1, [&](const CommunicatorPtr& group) {
    for (const auto& [name, value] : meters.take(*group)) names.insert(name);
  });
  EXPECT_THAT(names, ::testing::Contains("loss"));
  EXPECT_THAT(names, ::testing::Contains(task->goal().metric)) << "what is better is measured";
}

TEST(Task, BernoulliRefusesSamplesThatAreNotProbabilities) {
  const auto sample = sample_for("variational");
  const auto with = [&](const std::string& likelihood, double first) {
    const auto task = config::load_as<Tasks::Choice>("task", "{name: variational, likelihood: " + likelihood + "}", "")
                          .make(sample, nullptr);
    Batch batch{.inputs = {at::full({2, 3, 4, 5}, 0.25), at::randn({2, 2})}, .valid = 2, .global_rows = 2};
    batch.inputs[0][0][0][0][0] = first;
    task->prepare(batch);
    task->check_values(batch);
  };
  with("bernoulli", 0);
  with("bernoulli", 1);
  with("gaussian", -1.5);
  EXPECT_THAT(
      [&] { with("bernoulli", -1.5); },
      ThrowsMessage<ConfigError>(HasSubstr("task.likelihood: bernoulli is for samples from 0 to 1, but those of "
                                           "the dataset reach from -1.5 to 0.25; use likelihood: gaussian")));
  EXPECT_THAT([&] { with("bernoulli", 2); }, ThrowsMessage<ConfigError>(HasSubstr("reach from 0.25 to 2")));
}

TEST(Task, AutoIsTheTaskThatTheSamplesName) {
  EXPECT_EQ(make("auto", language_samples(4, 6))->goal().metric, "loss");
  EXPECT_EQ(make("auto", classification_samples({2}, 6))->goal().metric, "accuracy");
  EXPECT_EQ(make("auto", sample_for("binary_classification"))->goal().metric, "auc");
  EXPECT_THAT([] { make("auto", {{{.name = "x"}}, {}, ""}); },
              ThrowsMessage<ConfigError>(HasSubstr("the dataset names no task")));
}

TEST(Task, IgnoredTargetsDoNotCount) {
  const auto sample = language_samples(3, 5, /*padded=*/true);
  const auto task = make("language_modelling", sample);
  Batch batch{.inputs = {at::tensor({1, 2, 3, 1, 2, 3}, at::kLong).view({2, 3})},
              .targets = {at::tensor({1L, 2L, 3L, 4L, kIgnored, kIgnored}, at::kLong).view({2, 3})},
              .valid = 2,
              .global_rows = 2};
  task->prepare(batch);
  EXPECT_TRUE(at::equal(batch.row_weights, at::tensor({3.0, 1.0}, at::kDouble)));
  EXPECT_EQ(batch.weight(), 4);
  EXPECT_EQ(rows_of(batch, 1, 2).weight(), 1);
  const at::Tensor scores = at::randn({2, 3, 5});
  const double mean = task->mean_loss({scores}, batch).item<double>();
  double sum = 0;
  const auto logs = scores.log_softmax(-1);
  for (int i = 0; i < 3; ++i) sum -= logs[0][i][i + 1].item<double>();
  sum -= logs[1][0][4].item<double>();
  EXPECT_NEAR(mean, sum / 4, 1e-5);
}

TEST(Task, RowsCountEquallyIfNothingIsIgnored) {
  const auto sample = language_samples(3, 5);
  const Batch batch = batch_for(*make("language_modelling", sample), sample, 2, 1);
  EXPECT_FALSE(batch.row_weights.defined());
  EXPECT_EQ(batch.weight(), 2);
}

TEST(Task, SegmentationTakesScoresInTheLayoutOfConvolutions) {
  const auto task = make("segmentation", sample_for("segmentation"));
  EXPECT_EQ(task->model().outputs[0].shape, (Shape{6, 4, 5}));
  EXPECT_EQ(task->predictions({at::randn({2, 6, 4, 5})})[0].sizes(), (at::IntArrayRef{2, 4, 5, 6}));
}

TEST(Task, ReconstructionIsOfTheInput) {
  const auto sample = sample_for("reconstruction");
  const auto task = make("reconstruction", sample);
  const Batch batch = batch_for(*task, sample, 2, 0);
  ASSERT_THAT(batch.targets, SizeIs(1));
  EXPECT_EQ(task->mean_loss({batch.inputs[0]}, batch).item<double>(), 0);
}

TEST(Task, MetricLearningNeedsAnEmbeddingOfEachMember) {
  const auto samples = [](Shape members) {
    return SampleSpec{sample_for("metric_learning").inputs,
                      {{.name = "classes", .shape = std::move(members), .dtype = at::kLong, .classes = 6}},
                      "metric_learning"};
  };
  EXPECT_EQ(make("metric_learning", samples({2}))->model().outputs[0].shape, (Shape{2, 32}));
  EXPECT_EQ(make("metric_learning", samples({3}))->model().outputs[0].shape, (Shape{3, 32}));
  EXPECT_EQ(make("metric_learning", samples({}), "triplet")->model().outputs[0].shape, (Shape{32}));
  EXPECT_THAT([&] { make("metric_learning", samples({})); },
              ThrowsMessage<ConfigError>(HasSubstr("loss: {name: triplet, mining: batch_hard}")));
  EXPECT_THAT([] { make("metric_learning", sample_for("regression")); },
              ThrowsMessage<ConfigError>(HasSubstr("task metric_learning needs the class of each member")));
}

TEST(Task, TakesTheLossOfTheConfig) {
  const auto sample = sample_for("regression");
  const Batch batch = batch_for(*make("regression", sample), sample, 2, 0);
  const at::Tensor output = at::full({2, 2}, 3.0);
  EXPECT_FLOAT_EQ(make("regression", sample)->mean_loss({output}, batch).item<float>(), 9);
  EXPECT_FLOAT_EQ(make("regression", sample, "mae")->mean_loss({output}, batch).item<float>(), 3);
}

TEST(Task, UnsuitableSamplesAreRefused) {
  const auto refused = [](const std::string& task, const std::string& sample) {
    return [=] { make(task, sample_for(sample)); };
  };
  EXPECT_THAT(refused("classification", "regression"), ThrowsMessage<ConfigError>(HasSubstr("needs class numbers")));
  EXPECT_THAT(refused("regression", "classification"),
              ThrowsMessage<ConfigError>(HasSubstr("needs numbers as targets")));
  EXPECT_THAT(refused("language_modelling", "classification"),
              ThrowsMessage<ConfigError>(HasSubstr("needs a row of tokens")));
  EXPECT_THAT(refused("segmentation", "classification"), ThrowsMessage<ConfigError>(HasSubstr("[height, width]")));
  EXPECT_THAT(refused("ranking", "language_modelling"), ThrowsMessage<ConfigError>(HasSubstr("relevances [items]")));
  EXPECT_THAT(refused("classification", "reconstruction"), ThrowsMessage<ConfigError>(HasSubstr("a target for each")));
}

}  // namespace
}  // namespace phalanx
