// SPDX-License-Identifier: Apache-2.0
#include "engine/experiment/experiment.h"

#include <ATen/ops/equal.h>
#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/testing/run.h"
#include "framework/base/storage/safetensors.h"

namespace phalanx {
namespace {

using testing::Changes;
using testing::column;
using ::testing::Each;
using ::testing::ElementsAre;
using testing::final_weights;
using testing::Finished;
using testing::flat;
using ::testing::Ge;
using ::testing::HasSubstr;
using testing::Interference;
using testing::Json;
using testing::metrics;
using testing::new_folder;
using testing::relative_difference;
using testing::run_tiny;
using ::testing::SizeIs;
using testing::summary;

Finished run(int ranks, const Changes& changes = {}, const Interference& interference = {}) {
  return run_tiny(ranks, new_folder(), changes, interference);
}

std::vector<std::string> keys_of(const Json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  return keys;
}

double metric(const Finished& run, const std::string& name) { return testing::metric(run.results[0].test, name); }

TEST(Experiment, TheSameSeedTwiceGivesBitwiseTheSameWeights) {
  for (const int ranks : {1, 3}) {
    const auto first = run(ranks), second = run(ranks);
    EXPECT_TRUE(at::equal(first.weights[0], second.weights[0])) << ranks << " ranks";
    EXPECT_EQ(first.results[0].test, second.results[0].test) << ranks << " ranks";
  }
}

TEST(Experiment, AnotherSeedGivesOtherWeights) {
  EXPECT_FALSE(at::equal(run(1).weights[0], run(1, {"seed=4"}).weights[0]));
}

TEST(Experiment, TheResultDoesNotDependOnTheNumberOfRanks) {
  const auto alone = run(1);
  for (const int ranks : {2, 3, 4}) {
    const auto together = run(ranks);
    EXPECT_LT(relative_difference(together.weights[0], alone.weights[0]), 1e-5) << ranks << " ranks";
    EXPECT_NEAR(metric(together, "loss"), metric(alone, "loss"), 1e-5) << ranks << " ranks";
    EXPECT_DOUBLE_EQ(metric(together, "accuracy"), metric(alone, "accuracy")) << ranks << " ranks";
  }
}

TEST(Experiment, MoreRanksThanSamplesInTheLastBatchChangeNothing) {
  const Changes changes{"dataset.train_samples=33", "dataset.test_samples=1"};  // a batch of 1
  const auto alone = run(1, changes), together = run(4, changes);
  EXPECT_EQ(together.results[0].steps, 6);
  EXPECT_LT(relative_difference(together.weights[0], alone.weights[0]), 1e-5);
}

TEST(Experiment, ReplicasEndBitwiseEqual) {
  const auto three = run(3);
  EXPECT_TRUE(at::equal(three.weights[1], three.weights[0]));
  EXPECT_TRUE(at::equal(three.weights[2], three.weights[0]));
}

TEST(Experiment, SingleEqualsAllReduceOnOneRank) {
  EXPECT_TRUE(at::equal(run(1, {"strategy=single"}).weights[0], run(1, {"strategy=all_reduce"}).weights[0]));
}

TEST(Experiment, BucketsOfAnySizeGiveTheSame) {
  const auto small = run(2, {"framework.bucket_bytes=1"}), large = run(2, {"framework.bucket_bytes=25MB"});
  EXPECT_LT(relative_difference(small.weights[0], large.weights[0]), 1e-6);
}

// Sums over two ranks are twice the means, so bits are the same with half the learning rate.
TEST(Experiment, GradientsMayBeSums) {
  for (const std::string strategy :
       {"auto", "all_reduce", "overlapped", "sharded", "{intra: overlapped, inter: all_reduce, ranks_per_group: 1}"}) {
    const auto sum = run(2, {"strategy=" + strategy, "train.gradients=sum", "optimizer.lr=0.02"});
    const auto mean = run(2, {"strategy=" + strategy, "optimizer.lr=0.04"});
    EXPECT_TRUE(at::equal(sum.weights[0], mean.weights[0])) << strategy;
    EXPECT_EQ(sum.results[0].test, mean.results[0].test);
  }
}

// Changes the parameters of rank 1 in the seventh step, without the strategy's knowledge.
Interference divergence() {
  return {.add_hooks = [](Engine& engine, int rank) {
    if (rank != 1) return;
    engine.on(Event::kSample, [&engine](State& state) {
      if (state.step == 6) engine.slices().at(0).values.narrow(0, 0, 1).add_(1);
    });
  }};
}

TEST(Experiment, ADivergedReplicaEndsTheRun) {
  const std::string own_copies = "strategy=all_reduce";
  const auto two = run(2, {own_copies, "replica_check.every_steps=4"}, divergence());
  EXPECT_THAT(two.errors, Each(HasSubstr("after step 8 replicas differ: parameter ")));
  EXPECT_THAT(two.errors, Each(HasSubstr(" on rank 0 or rank 1")));
  const auto three = run(3, {own_copies, "replica_check.every_steps=4"}, divergence());
  EXPECT_THAT(three.errors, Each(HasSubstr(" on rank 1")));
  EXPECT_THAT(run(2, {own_copies}, divergence()).errors, Each("")) << "the first check is after step 100";
}

TEST(Experiment, ADivergedReplicaIsRepaired) {
  const auto two = run(2, {"strategy=all_reduce", "replica_check={every_steps: 1, repair: true}"}, divergence());
  EXPECT_THAT(two.errors, Each(""));
  EXPECT_TRUE(at::equal(two.weights[0], two.weights[1]));
  EXPECT_EQ(summary(two).at("repaired_tensors"), 1);
}

// Each update of momentum and of averages is a function of the same gradients, so no check of a sound run finds
// anything.
TEST(Experiment, SoundReplicasAreEqual) {
  for (const std::string strategy : {"all_reduce", "overlapped", "sharded", "local_sgd"}) {
    const auto three =
        run(3, {"strategy=" + strategy, "replica_check.every_steps=1", "train.ema_decay=0.9", "optimizer=adamw"});
    EXPECT_THAT(three.errors, Each("")) << strategy;
  }
}

// Every strategy reports the norms of a rank before it combines gradients of different ranks.
TEST(Experiment, NormsOfEachRanksGradientsAreCompared) {
  const auto ratio_of = [](const std::string& strategy, const std::string& determinism = "run") {
    const auto two =
        run(2, {"strategy=" + strategy, "determinism=" + determinism, "watch.gradient_norms.every_steps=2"});
    EXPECT_THAT(two.errors, Each("")) << strategy;
    return summary(two).at("train").at("gradient_norm_ratio").get<double>();
  };
  const double expected = ratio_of("all_reduce");
  EXPECT_GT(expected, 1.001);
  for (const std::string strategy : {"overlapped", "sharded", "{sharded: {stage: 2}}"}) {
    EXPECT_NEAR(ratio_of(strategy), expected, 1e-3) << strategy;
  }
  EXPECT_GT(ratio_of("all_reduce", "world_size_invariant"), 1.001) << "of the virtual shards of each rank";
}

TEST(Experiment, BucketsMayBeMeasured) {
  const auto two = run(2, {"framework.bucket_bytes=auto"});
  EXPECT_EQ(two.results[0].bucket_bytes, 64 << 10) << "the smallest size, since the model is small";
  EXPECT_EQ(two.results[1].bucket_bytes, two.results[0].bucket_bytes);
  EXPECT_EQ(summary(two).at("bucket_bytes"), 64 << 10);
  EXPECT_EQ(run(1, {"framework.bucket_bytes=3KB"}).results[0].bucket_bytes, 3072);
}

TEST(Experiment, EveryRankGetsTheTestMetricsOfAllSamples) {
  const auto three = run(3);
  for (const std::size_t rank : {1, 2}) EXPECT_EQ(three.results[rank].test, three.results[0].test);
  const double hits = metric(three, "accuracy") * 26;
  EXPECT_NEAR(hits, std::round(hits), 1e-9) << "a fraction of 26 samples, without padding";
}

TEST(Experiment, Learns) {
  const auto losses = column<double>(metrics(run(1, {"train.epochs=8"}), "train"), "loss");
  EXPECT_LT(losses.back(), losses.front() / 2);
}

TEST(Experiment, SummaryHasThePromisedKeys) {
  const auto two = run(2);
  const auto text = summary(two);
  EXPECT_THAT(keys_of(text), ::testing::IsSupersetOf(
                                 {"ranks", "train_seconds", "seconds_to_first_step", "test", "samples_per_second"}));
  EXPECT_EQ(text.at("ranks"), 2);
  EXPECT_EQ(text.at("steps"), 12);
  EXPECT_EQ(text.at("stopped"), false);
  EXPECT_GT(text.at("samples_per_second"), 0);
  EXPECT_GT(text.at("train_seconds"), 0);
  EXPECT_GT(text.at("seconds_to_first_step"), 0);
  EXPECT_THAT(keys_of(text.at("test")), ElementsAre("loss", "accuracy"));
  EXPECT_EQ(text.at("test").at("accuracy"), metric(two, "accuracy"));
}

TEST(Experiment, TheSummaryNamesTheStrategyThatAutoSelects) {
  EXPECT_EQ(summary(run(1)).at("strategy"), Json({{"name", "single"}}));
  EXPECT_EQ(summary(run(1, {"determinism=world_size_invariant"})).at("strategy"), Json({{"name", "all_reduce"}}));
  EXPECT_THAT(summary(run(2)).at("strategy").at("name").get<std::string>(),
              ::testing::AnyOf("sharded", "all_reduce", "overlapped"));
}

TEST(Experiment, TheSummaryHasTheBytesThatCompressionSaved) {
  const auto strategy = summary(run(2, {"strategy={name: all_reduce, compression: bf16}"})).at("strategy");
  EXPECT_EQ(strategy.at("compression_ratio"), 2);
  EXPECT_EQ(strategy.at("uncompressed_bytes"), 2 * strategy.at("sent_bytes").get<double>());
  EXPECT_GT(strategy.at("sent_bytes"), 0);
}

TEST(Experiment, MetricsHaveALineEveryFewStepsAndAtTheEndOfAnEpoch) {
  const auto two = run(2);
  const auto train = metrics(two, "train");
  EXPECT_THAT(column<int>(train, "step"), ElementsAre(3, 4, 6, 8, 9, 12));
  EXPECT_THAT(column<int>(train, "epoch"), ElementsAre(0, 0, 1, 1, 2, 2));
  for (const auto& line : train) {
    EXPECT_THAT(keys_of(line), ElementsAre("step", "epoch", "split", "loss", "accuracy", "samples_per_second",
                                           "seconds", "learning_rate", "step_ms"));
  }
  const auto test = metrics(two, "test");
  EXPECT_THAT(column<int>(test, "step"), ElementsAre(4, 8, 12));
  EXPECT_THAT(column<int>(test, "epoch"), ElementsAre(0, 1, 2));
  EXPECT_EQ(test.back().at("accuracy"), metric(two, "accuracy"));
}

TEST(Experiment, TestsAsOftenAsTheConfigSaysAndAlwaysAtTheEnd) {
  EXPECT_THAT(column<int>(metrics(run(1, {"evaluate.every_epochs=2"}), "test"), "step"), ElementsAre(8, 12));
  EXPECT_THAT(column<int>(metrics(run(1, {"evaluate.every_epochs=0"}), "test"), "step"), ElementsAre(12));
  EXPECT_THAT(column<int>(metrics(run(1, {"evaluate.every_epochs=3"}), "test"), "step"), ElementsAre(12)) << "once";
}

TEST(Experiment, TheLastTestIsOfTheLastEpoch) {
  EXPECT_THAT(column<int>(metrics(run(1, {"evaluate.every_epochs=0"}), "test"), "epoch"), ElementsAre(2));
  EXPECT_THAT(column<int>(metrics(run(1, {"evaluate.every_epochs=0", "train.max_steps=5"}), "test"), "epoch"),
              ElementsAre(1));
}

TEST(Experiment, TestingDoesNotChangeWhatIsLearned) {
  EXPECT_TRUE(
      at::equal(run(2, {"evaluate.every_epochs=1"}).weights[0], run(2, {"evaluate.every_epochs=0"}).weights[0]));
}

TEST(Experiment, EndsAfterMaxSteps) {
  const auto two = run(2, {"train.max_steps=6"});
  EXPECT_EQ(two.results[0].steps, 6);
  EXPECT_EQ(two.results[1].steps, 6);
  EXPECT_FALSE(two.results[0].stopped) << "no rank was asked to stop";
  EXPECT_EQ(metrics(two, "train").back().at("step"), 6);
  EXPECT_EQ(metrics(two, "test").back().at("step"), 6);
}

TEST(Experiment, MaxStepsBeyondTheLastEpochDoNothing) {
  EXPECT_EQ(run(1, {"train.max_steps=100"}).results[0].steps, 12);
}

TEST(Experiment, OneRankAskedToStopEndsAllCleanly) {
  int polls = 0;
  const auto three = run(3, {}, {.stop_asked = [&](int rank) { return rank == 1 && ++polls == 4; }});
  for (const auto& result : three.results) {
    EXPECT_EQ(result.steps, 5) << "asked after step 4, agreed after step 5";
    EXPECT_TRUE(result.stopped);
  }
  EXPECT_EQ(summary(three).at("stopped"), true);
  EXPECT_EQ(summary(three).at("steps"), 5);
  EXPECT_TRUE(std::filesystem::exists(three.folder.weights()));
  EXPECT_EQ(metrics(three, "test").size(), 1u) << "after the only complete epoch";
}

TEST(Experiment, WritesTheWeightsOfTheLastStep) {
  const auto two = run(2);
  std::vector<at::Tensor> saved;
  std::vector<std::string> names;
  for (const auto& [name, tensor] : load_safetensors(two.folder.weights())) {
    names.push_back(name);
    saved.push_back(tensor);
  }
  EXPECT_THAT(names, ElementsAre("fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"));
  EXPECT_TRUE(at::equal(flat(saved), two.weights[0]));
}

TEST(Experiment, WritesNoWeightsIfTheConfigSaysSo) {
  EXPECT_FALSE(std::filesystem::exists(run(1, {"checkpoint.final_weights=false"}).folder.weights()));
}

TEST(Experiment, MovingAveragesAreTestedAndSavedAndDoNotChangeTraining) {
  const auto plain = run(1), averaged = run(1, {"train.ema_decay=0.9"});
  EXPECT_TRUE(at::equal(averaged.weights[0], plain.weights[0]));
  EXPECT_NE(summary(averaged).at("test").at("loss"), summary(plain).at("test").at("loss"));
  const double difference = relative_difference(final_weights(averaged), plain.weights[0]);
  EXPECT_GT(difference, 1e-3);
  EXPECT_LT(difference, 0.5);
}

TEST(Experiment, ClippingUsesTheNormOverAllRanks) {
  const auto free = run(1), clipped = run(1, {"train.clip_norm=0.2"}),
             sharded = run(2, {"train.clip_norm=0.2", "strategy=sharded"});
  EXPECT_LT(relative_difference(sharded.weights[0], clipped.weights[0]), 1e-5);
  EXPECT_GT(relative_difference(free.weights[0], clipped.weights[0]), 1e-2);
  const auto by_value = run(1, {"train.clip_value=0.01"});
  EXPECT_GT(relative_difference(free.weights[0], by_value.weights[0]), 1e-2);
}

TEST(Experiment, RefusesAMeshThatDoesNotFitTheRanks) {
  EXPECT_THAT(run(2, {"mesh.data=3"}).errors, Each("mesh: data: 3, but 2 ranks train; 0 uses all"));
  EXPECT_THAT(run(2, {"mesh.data=2"}).errors, Each(""));
}

TEST(Experiment, RefusesTheSingleStrategyOnSeveralRanks) {
  EXPECT_THAT(run(2, {"strategy=single"}).errors, Each(HasSubstr("strategy single trains on one rank")));
}

TEST(Experiment, AScheduleDecidesTheLearningRate) {
  const auto constant = run(1), cosine = run(1, {"schedule=cosine"});
  EXPECT_FALSE(at::equal(constant.weights[0], cosine.weights[0]));
  // The schedule spans the steps that are taken. Its factor at step 0 is 1, so a run of one step is the same.
  EXPECT_TRUE(
      at::equal(run(1, {"train.max_steps=1"}).weights[0], run(1, {"train.max_steps=1", "schedule=cosine"}).weights[0]));
}

TEST(Experiment, PlateauSeesEveryTest) {
  // No test exceeds the first by the threshold, so the learning rate is 0 after the second.
  const std::string plateau =
      "schedule={name: plateau, patience: 0, threshold: 1000, threshold_is: absolute, gamma: 0}";
  const auto two = run(2, {plateau, "train.epochs=2"}), four = run(2, {plateau, "train.epochs=4"});
  EXPECT_TRUE(at::equal(four.weights[0], two.weights[0]));
  EXPECT_TRUE(at::equal(run(2, {"train.epochs=2"}).weights[0], two.weights[0])) << "until then nothing has changed";
}

TEST(Experiment, RefusesAScheduleThatWatchesAMetricThatIsNotMeasured) {
  EXPECT_THAT(run(2, {"schedule={name: plateau, metric: auc}"}).errors,
              Each("schedule: watches \"auc\", which none of evaluate.meters measures; add the meter"));
  EXPECT_THAT(run(2, {"schedule={name: plateau, metric: auc}", "evaluate.meters=[{meter: auc}]"}).errors, Each(""));
}

TEST(Experiment, MetersCanBeChosen) {
  const auto two = run(2, {"evaluate.meters=[{meter: {name: class_error, k: 3}}, {meter: recall}]",
                           "watch.meters=[{meter: perplexity}, {meter: {name: moving_average, window: 2}}]"});
  EXPECT_THAT(keys_of(summary(two).at("test")), ElementsAre("class_error_top3", "recall"));
  const auto lines = metrics(two, "train");
  EXPECT_THAT(keys_of(lines.at(0)), ::testing::IsSupersetOf({"perplexity", "moving_loss", "moving_loss_std"}));
  EXPECT_EQ(lines.at(0).count("loss"), 0u);
}

TEST(Experiment, EveryMeterOfClassesReadsTheSameOnAllRanks) {
  std::string meters;
  for (const char* name : {"accuracy", "auc", "average", "average_precision", "class_error", "confusion",
                           "mean_average_precision", "multi_label_confusion", "ndcg", "precision", "precision_at_k"}) {
    meters += std::string("{meter: ") + name + "}, ";
  }
  const auto three = run(3, {"evaluate.meters=[" + meters + "{meter: recall}]"});
  EXPECT_THAT(three.errors, Each(""));
  EXPECT_THAT(three.results[0].test, SizeIs(Ge(12u)));
  for (const std::size_t rank : {1, 2}) EXPECT_EQ(three.results[rank].test, three.results[0].test);
}

TEST(Experiment, RefusesMetersOfAnotherTaskBeforeTheFirstStep) {
  const auto two = run(2, {"evaluate.meters=[{meter: accuracy}, {meter: mse}]"});
  EXPECT_THAT(two.errors, Each(HasSubstr("config: evaluate.meters[1]: mse needs as many outputs as targets")));
  EXPECT_THAT(two.began_after, Each(-1));
  const auto regression = run(1, {"dataset=numbers_under_test", "watch.meters=[{meter: mse}, {meter: accuracy}]",
                                  "evaluate.meters=[{meter: confusion}, {meter: mse}]"});
  EXPECT_THAT(regression.errors, Each(HasSubstr("config: watch.meters[1]: a meter needs scores")));
  EXPECT_THAT(regression.errors, Each(HasSubstr("\nconfig: evaluate.meters[0]: a meter needs scores")));
  EXPECT_THAT(regression.began_after, Each(-1));
}

TEST(Experiment, RefusesMetersThatDoNotSuitTheClassesBeforeTheFirstStep) {
  const auto two = run(
      2, {"evaluate.meters=[{meter: accuracy}, {meter: {name: class_error, k: 999}}]", "watch.meters=[{meter: mse}]"});
  EXPECT_THAT(two.errors, Each(HasSubstr("evaluate.meters[1]: class_error: k is 999, but there are 10 classes")));
  EXPECT_THAT(two.errors, Each(HasSubstr("watch.meters[0]: mse needs as many outputs as targets")));
  EXPECT_THAT(two.began_after, Each(-1));
}

TEST(Experiment, PrefetchingChangesNoBit) {
  EXPECT_TRUE(at::equal(run(2).weights[0], run(2, {"loader.prefetch=3"}).weights[0]));
}

TEST(Experiment, WithoutShufflingEveryEpochHasTheOrderOfTheData) {
  EXPECT_FALSE(at::equal(run(1).weights[0], run(1, {"loader.shuffle=false"}).weights[0]));
  EXPECT_TRUE(at::equal(run(1, {"loader.shuffle=false"}).weights[0], run(1, {"loader.shuffle=false"}).weights[0]));
}

}  // namespace
}  // namespace phalanx
