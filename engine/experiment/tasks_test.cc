// SPDX-License-Identifier: Apache-2.0
// Tests runs of tasks other than the classification of images: the weights of samples in a batch, and the metrics.
#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <gmock/gmock.h>

#include <cmath>
#include <memory>
#include <set>
#include <string>

#include "engine/experiment/evaluate.h"
#include "engine/testing/run.h"
#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/base/storage/safetensors.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

using testing::Changes;
using ::testing::Each;
using testing::Finished;
using ::testing::HasSubstr;
using testing::metric;
using testing::new_folder;
using testing::run_tiny;

struct Workload {
  std::string name, model, dataset;
  double reached;  // least ratio of the last loss to the first one that counts as learning
};

class Workloads : public ::testing::TestWithParam<Workload> {
 protected:
  Finished run(int ranks, Changes changes = {}) const {
    changes.insert(changes.begin(), {"model=" + GetParam().model, "dataset=" + GetParam().dataset, "train.epochs=6"});
    return run_tiny(ranks, new_folder(), changes);
  }
};

INSTANTIATE_TEST_SUITE_P(
    OfTasks, Workloads,
    ::testing::Values(Workload{"PaddedSequences", "{name: char_lm, layers: 1, heads: 2, width: 16}",
                               "padded_tokens_under_test", 0.9},
                      Workload{"Regression", "{name: mlp, hidden: [16]}", "numbers_under_test", 0.5},
                      Workload{"TwoInputs", "two_towers_under_test", "pairs_under_test", 0.9}),
    [](const auto& info) { return info.param.name; });

TEST_P(Workloads, TrainToTheSameWeightsOnAnyNumberOfRanks) {
  const auto one = run(1);
  ASSERT_THAT(one.errors, Each(""));
  for (const int ranks : {2, 3}) {
    const auto several = run(ranks);
    ASSERT_THAT(several.errors, Each(""));
    EXPECT_LT(testing::relative_difference(several.weights[0], one.weights[0]), 1e-5) << ranks;
    EXPECT_TRUE(at::equal(several.weights[0], several.weights.back())) << ranks;
    EXPECT_NEAR(metric(several.results[0].test, "loss"), metric(one.results[0].test, "loss"), 1e-5) << ranks;
    EXPECT_NEAR(metric(several.results[0].train, "loss"), metric(one.results[0].train, "loss"), 1e-5) << ranks;
  }
}

TEST_P(Workloads, AccumulationChangesNothing) {
  const auto whole = run(2), in_parts = run(2, {"train.accumulate=3"});
  ASSERT_THAT(in_parts.errors, Each(""));
  EXPECT_LT(testing::relative_difference(in_parts.weights[0], whole.weights[0]), 1e-5);
}

TEST_P(Workloads, Learn) {
  const auto trained = run(2);
  const auto losses = testing::column<double>(testing::metrics(trained, "test"), "loss");
  ASSERT_GE(losses.size(), 2u);
  EXPECT_LT(losses.back(), GetParam().reached * losses.front());
}

TEST_P(Workloads, SavedWeightsAreEvaluatedToTheSameMetrics) {
  const auto trained = run(2);
  ASSERT_THAT(trained.errors, Each(""));
  const auto config =
      testing::tiny_config({"model=" + GetParam().model, "dataset=" + GetParam().dataset, "train.epochs=6"});
  const std::string predictions = testing::new_path();
  for (const int ranks : {1, 3}) {
    testing::run_ranks("inproc", ranks, [&](const CommunicatorPtr& world) {
      const auto result =
          evaluate_weights(config, {.world = world, .splits = config.dataset.make(), .folder = trained.folder},
                           {.weights = trained.folder.weights(), .predictions = predictions});
      ASSERT_TRUE(result);
      EXPECT_EQ(result->samples, 26);
      EXPECT_EQ(result->metrics.size(), trained.results[0].test.size());
      for (const auto& [name, value] : trained.results[0].test) {
        EXPECT_NEAR(metric(result->metrics, name), value, 1e-5) << name << " on " << ranks;
      }
    });
    const auto saved = load_safetensors(predictions);
    ASSERT_GE(saved.size(), 2u);
    for (const auto& [name, tensor] : saved) EXPECT_EQ(tensor.size(0), 26) << name;
    // Rows are in the order of the dataset, whichever rank had which sample.
    Batch all;
    std::vector<std::int64_t> indices(26);
    for (std::size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<std::int64_t>(i);
    config.dataset.make().test->gather(indices, 0, all);
    EXPECT_TRUE(at::equal(saved[1].second, all.targets[0])) << saved[1].first;
  }
}

TEST(Tasks, MeanLossIsOverTokensNotOverSequences) {
  const Changes changes{"model={name: char_lm, layers: 1, heads: 2, width: 16}", "dataset=padded_tokens_under_test",
                        "train.epochs=1"};
  const auto trained = run_tiny(2, new_folder(), changes);
  ASSERT_THAT(trained.errors, Each(""));
  const auto config = testing::tiny_config(changes);
  const std::string predictions = testing::new_path();
  testing::run_ranks("inproc", 1, [&](const CommunicatorPtr& world) {
    evaluate_weights(config, {.world = world, .splits = config.dataset.make(), .folder = trained.folder},
                     {.weights = trained.folder.weights(), .predictions = predictions});
  });
  at::Tensor scores, targets;
  for (const auto& [name, tensor] : load_safetensors(predictions)) {
    if (name == "scores") scores = tensor.to(at::kDouble).log_softmax(-1);
    if (name == "next_tokens") targets = tensor;
  }
  double sum = 0;
  std::int64_t tokens = 0, hits = 0;
  for (std::int64_t row = 0; row < targets.size(0); ++row) {
    for (std::int64_t i = 0; i < targets.size(1); ++i) {
      const auto target = targets[row][i].item<std::int64_t>();
      if (target == kIgnored) continue;
      sum -= scores[row][i][target].item<double>();
      hits += scores[row][i].argmax().item<std::int64_t>() == target;
      ++tokens;
    }
  }
  ASSERT_LT(tokens, targets.numel()) << "some are padding";
  EXPECT_NEAR(metric(trained.results[0].test, "loss"), sum / static_cast<double>(tokens), 1e-5);
  EXPECT_NEAR(metric(trained.results[0].test, "perplexity"), std::exp(sum / static_cast<double>(tokens)), 1e-4);
  EXPECT_DOUBLE_EQ(metric(trained.results[0].test, "accuracy"),
                   static_cast<double>(hits) / static_cast<double>(tokens));
}

TEST(Tasks, PredictionsOfAReconstructionComeWithTheirInputs) {
  const Changes changes{"dataset=numbers_under_test", "task=reconstruction", "train.epochs=1"};
  const auto trained = run_tiny(2, new_folder(), changes);
  ASSERT_THAT(trained.errors, Each(""));
  const auto config = testing::tiny_config(changes);
  const std::string predictions = testing::new_path();
  testing::run_ranks("inproc", 2, [&](const CommunicatorPtr& world) {
    evaluate_weights(config, {.world = world, .splits = config.dataset.make(), .folder = trained.folder},
                     {.weights = trained.folder.weights(), .predictions = predictions});
  });
  const auto saved = load_safetensors(predictions);
  ASSERT_EQ(saved.size(), 2u);
  EXPECT_EQ(saved[0].first, "reconstruction");
  EXPECT_EQ(saved[1].first, "target");
  Batch first;
  config.dataset.make().test->gather(std::vector<std::int64_t>{0}, 0, first);
  EXPECT_TRUE(at::equal(saved[1].second[0], first.inputs[0][0]));
}

TEST(Tasks, WorldSizeInvariantBitsDoNotDependOnTheRanks) {
  const Changes changes{"model={name: char_lm, layers: 1, heads: 2, width: 16}", "dataset=padded_tokens_under_test",
                        "determinism=world_size_invariant", "launch.threads=1", "train.virtual_shards=4"};
  const auto one = run_tiny(1, new_folder(), changes), two = run_tiny(2, new_folder(), changes);
  ASSERT_THAT(two.errors, Each(""));
  EXPECT_TRUE(at::equal(one.weights[0], two.weights[0]));
}

TEST(Tasks, ModelsAndTasksThatDoNotGoTogetherAreRefused) {
  const auto refused = [](const Changes& changes) { return run_tiny(1, new_folder(), changes).errors.at(0); };
  EXPECT_THAT(refused({"dataset=pairs_under_test"}),
              HasSubstr("model mlp has one input and one output, but the task has inputs one [1], two [2]"));
  EXPECT_THAT(refused({"task=regression"}), HasSubstr("task regression needs numbers as targets"));
  EXPECT_THAT(refused({"dataset=numbers_under_test", "task=classification"}),
              HasSubstr("task classification needs class numbers as targets"));
}

const Changes kAdversaries{"model=adversaries_under_test", "dataset=real_numbers_under_test",
                           "train.global_batch_size=10", "optimizer={name: sgd, lr: 0.1}",
                           "turns={generator: {optimizer: {name: adamw, lr: 0.05}}}"};

Changes adversaries(Changes changes) {
  changes.insert(changes.begin(), kAdversaries.begin(), kAdversaries.end());
  return changes;
}

TEST(Turns, EachUpdateChangesOnlyTheParametersOfItsTurn) {
  const auto after = [](int steps) {
    const auto run = run_tiny(2, new_folder(), adversaries({"train.max_steps=" + std::to_string(steps)}));
    EXPECT_THAT(run.errors, Each(""));
    std::pair<at::Tensor, at::Tensor> parts;
    const auto named = run.results[0].model->named_parameters();
    Tensors generator, discriminator;
    for (const auto& [name, tensor] : named) {
      (name.starts_with("generator") ? generator : discriminator).push_back(tensor);
    }
    return std::pair(testing::flat(generator), testing::flat(discriminator));
  };
  auto before = after(1);
  for (int steps = 2; steps <= 5; ++steps) {
    const auto now = after(steps);
    const bool generators = steps % 2 == 0;
    EXPECT_EQ(at::allclose(now.first, before.first, 1e-5, 1e-6), !generators) << steps;
    EXPECT_EQ(at::allclose(now.second, before.second, 1e-5, 1e-6), generators) << steps;
    before = now;
  }
}

TEST(Turns, TrainToTheSameWeightsOnAnyNumberOfRanks) {
  const auto one = run_tiny(1, new_folder(), adversaries({}));
  for (const std::string strategy : {"all_reduce", "overlapped", "sharded"}) {
    for (const int ranks : {2, 3}) {
      const auto several = run_tiny(ranks, new_folder(), adversaries({"strategy=" + strategy}));
      ASSERT_THAT(several.errors, Each(""));
      EXPECT_LT(testing::relative_difference(several.weights[0], one.weights[0]), 1e-5) << strategy << ranks;
    }
  }
}

TEST(Turns, TheGeneratorLearnsTheMeanOfTheSamples) {
  const auto run = run_tiny(2, new_folder(), adversaries({"train.epochs=60", "evaluate.every_epochs=0"}));
  ASSERT_THAT(run.errors, Each(""));
  for (const auto& [name, tensor] : run.results[0].model->named_parameters()) {
    if (name != "generator.bias") continue;
    EXPECT_NEAR(tensor.item<double>(), 2, 1) << "the noise is centered at 0";
  }
}

TEST(Turns, ResumeAStoppedRun) {
  const auto whole = run_tiny(2, new_folder(), adversaries({"train.max_steps=7"}));
  std::set<std::int64_t> turns;
  for (const int polls : {2, 3}) {
    const auto folder = new_folder();
    const auto first = run_tiny(
        2, folder, adversaries({"train.max_steps=7"}),
        {.stop_asked = [polls, calls = std::make_shared<int>(0)](int rank) { return rank == 0 && ++*calls >= polls; }});
    ASSERT_TRUE(first.results[0].stopped);
    ASSERT_LT(first.results[0].steps, 7);
    turns.insert(first.results[0].steps % 2);
    const auto rest = run_tiny(2, folder, adversaries({"train.max_steps=7", "checkpoint.resume=auto"}));
    ASSERT_THAT(rest.errors, Each(""));
    EXPECT_TRUE(at::equal(rest.weights[0], whole.weights[0])) << "stopped after step " << first.results[0].steps;
  }
  EXPECT_EQ(turns.size(), 2u) << "before either turn";
}

// Expects that a run which was stopped after either turn ends like a run which was not stopped.
void expect_to_go_on(const Changes& changes) {
  auto all = adversaries(changes);
  all.emplace_back("train.max_steps=7");
  const auto whole = run_tiny(2, new_folder(), all);
  ASSERT_THAT(whole.errors, Each(""));
  auto again = all;
  again.emplace_back("checkpoint.resume=auto");
  for (const int polls : {1, 2, 3, 4}) {
    const auto folder = new_folder();
    const auto first = run_tiny(2, folder, all, {.stop_asked = [polls, calls = std::make_shared<int>(0)](int rank) {
                                  return rank == 0 && ++*calls >= polls;
                                }});
    ASSERT_TRUE(first.results[0].stopped);
    const auto rest = run_tiny(2, folder, again);
    ASSERT_THAT(rest.errors, Each(""));
    EXPECT_TRUE(at::equal(rest.weights[0], whole.weights[0]))
        << changes[0] << ", stopped after step " << first.results[0].steps;
  }
}

TEST(Turns, ResumeWithTheResidualsOfCompression) {
  for (const char* strategy : {"all_reduce", "overlapped", "sharded"}) {
    expect_to_go_on({std::string("strategy={name: ") + strategy + ", compression: {name: topk, fraction: 0.3}}"});
  }
}

// The first step overflows, so that the first turn has had one update fewer.
TEST(Turns, ResumeWithTheUpdateCountOfEachTurn) {
  expect_to_go_on({"train.precision=fp16",
                   "train.loss_scale={initial: 1000000000, backoff: 0.000001, growth_interval: 1000}",
                   "optimizer={name: adam, lr: 0.01}", "strategy=all_reduce"});
}

TEST(Turns, RefuseSettingsThatCannotBeCombinedWithThem) {
  const auto refused = [](const Changes& changes) {
    return run_tiny(1, new_folder(), adversaries(changes)).errors.at(0);
  };
  EXPECT_THAT(refused({"turns={critic: {optimizer: sgd}}"}),
              HasSubstr("turns.critic: the task has no such turn; its turns are: discriminator, generator"));
  EXPECT_THAT(refused({"train.data_parallel=2"}), HasSubstr("train.data_parallel: cannot be combined"));
  EXPECT_THAT(refused({"strategy={levels: {intra: all_reduce, inter: {all_reduce: {compression: int8}}}}"}),
              HasSubstr("strategy: levels with compression cannot be combined with a task that trains in turns"));
  EXPECT_THAT(run_tiny(1, new_folder(), {"turns={generator: {optimizer: sgd}}"}).errors.at(0),
              HasSubstr("turns.generator: the task has no turns"));
}

TEST(Splits, TestDataChooseNothingIfThereIsAValidationSplit) {
  const auto held_out = run_tiny(
      2, new_folder(),
      {"evaluate.validation=0.2", "checkpoint.keep_best=1", "train.early_stop={metric: accuracy, patience: 100}"});
  ASSERT_THAT(held_out.errors, Each(""));
  EXPECT_EQ(testing::metrics(held_out, "validation").size(), 3u) << "one for each epoch";
  EXPECT_EQ(testing::metrics(held_out, "test").size(), 1u) << "at the end";
  EXPECT_EQ(testing::metrics(held_out, "validation").back().at("step"), 9) << "80 samples by 32, 3 epochs";
  EXPECT_EQ(testing::summary(held_out).at("chosen_by"), "validation");
  EXPECT_NE(metric(held_out.results[0].validation, "loss"), metric(held_out.results[0].test, "loss"));
  const auto without = run_tiny(1, new_folder(), {"checkpoint.keep_best=1"});
  EXPECT_EQ(testing::summary(without).at("chosen_by"), "test");
  EXPECT_THAT(read_file(without.folder.report()), HasSubstr("Test data chose the model"));
  EXPECT_THAT(read_file(held_out.folder.report()), ::testing::Not(HasSubstr("Test data chose the model")));
  EXPECT_EQ(testing::summary(run_tiny(1, new_folder(), {})).at("chosen_by"), "");
}

TEST(Goals, TheDirectionOfOtherMetricsMustBeSet) {
  const auto refused = [](const Changes& changes) { return run_tiny(1, new_folder(), changes).errors.at(0); };
  EXPECT_THAT(
      refused({"checkpoint.keep_best=1", "checkpoint.best_by=loss"}),
      HasSubstr("checkpoint.best_is: auto knows only for the task's own metric which value is best; for \"loss\" set"));
  EXPECT_THAT(refused({"train.early_stop.metric=loss"}), HasSubstr("train.early_stop.best: auto knows"));
  EXPECT_EQ(refused({"checkpoint.keep_best=1", "checkpoint.best_by=loss", "checkpoint.best_is=lowest"}), "");
  EXPECT_EQ(refused({"checkpoint.keep_best=1", "train.early_stop.metric=accuracy"}), "");
}

TEST(Splits, HeldOutSamplesDependOnlyOnTheSeed) {
  const auto held_out = [](int ranks, const std::string& seed) {
    const auto finished =
        run_tiny(ranks, new_folder(),
                 {"evaluate.validation=0.3", "seed=" + seed, "train.max_steps=1", "optimizer.lr=0.000000001"});
    return metric(finished.results.at(0).validation, "loss");
  };
  const double one = held_out(1, "3");
  EXPECT_NEAR(held_out(3, "3"), one, 1e-6);
  EXPECT_NE(held_out(1, "4"), one);
}

TEST(Expectations, AreCheckedForAnyMetricOfAnySplit) {
  const auto errors = [](const std::string& expect) {
    return run_tiny(2, new_folder(), {"evaluate.validation=0.2", "expect=" + expect}).errors;
  };
  EXPECT_THAT(errors("{test: {accuracy: {min: 0}, loss: {max: 1000}}, train: {loss: {min: 0, max: 1000}}}"), Each(""));
  EXPECT_THAT(errors("{test: {loss: {max: 0}}}"), Each(HasSubstr("expect.test.loss.max: wanted <= 0, got ")));
  EXPECT_THAT(errors("{validation: {loss: {min: 1500}}}"),
              Each(HasSubstr("expect.validation.loss.min: wanted >= 1500, got ")));
  EXPECT_THAT(errors("{train: {loss: {max: -1}}}"), Each(HasSubstr("expect.train.loss.max: wanted <= -1, got ")));
  EXPECT_THAT(
      errors("{test: {auc: {min: 0}}}"),
      Each(HasSubstr("expect.test.auc: none of evaluate.meters measures \"auc\"; they measure: loss, accuracy")));
  EXPECT_THAT(run_tiny(1, new_folder(), {"expect={validation: {loss: {max: 9}}}"}).errors,
              Each(HasSubstr("expect.validation: there is no validation split")));
}

}  // namespace
}  // namespace phalanx
