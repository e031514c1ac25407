#include "engine/experiment/experiment.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "engine/checkpoint/safetensors.h"
#include "framework/base/config/config.h"
#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

// 100 samples by 32: 4 steps an epoch, the last of them with 4 samples; 26 to test by 16, which no number of ranks
// divides evenly.
constexpr const char* kTiny = R"(
name: tiny
seed: 3
model: {name: mlp, hidden: [16]}
dataset: {name: digits, train_samples: 100, test_samples: 26, side: 16}
optimizer: {name: sgd, lr: 0.05, momentum: 0.9}
framework: {bucket_bytes: 4KB}
train: {global_batch_size: 32, epochs: 3}
evaluate: {global_batch_size: 16}
watch: {every_steps: 3, progress: false}
)";

at::Tensor flat(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> parts;
  for (const auto& tensor : tensors) parts.push_back(tensor.detach().flatten());
  return at::cat(parts);
}

double relative_difference(const at::Tensor& a, const at::Tensor& b) {
  return ((a - b).norm() / b.norm()).item<double>();
}

struct Finished {
  RunFolder folder;
  std::vector<ExperimentResult> results;  // by rank
  std::vector<at::Tensor> weights;        // all parameters of each rank's replica
  std::vector<std::string> errors;        // what a rank threw
};

class ExperimentTest : public ::testing::Test {
 protected:
  using Asked = std::function<bool(int rank)>;

  static ExperimentConfig config_with(const std::vector<std::string>& changes) {
    ExperimentConfig config;
    config::load_text(config, kTiny, "tiny.yaml", changes);
    return config;
  }

  Finished run(
      int ranks, const std::vector<std::string>& changes = {}, const Asked& stop_asked = [](int) { return false; }) {
    const auto config = config_with(changes);
    const auto splits = config.dataset.make();
    const auto count = static_cast<std::size_t>(ranks);
    Finished run{next_folder(), std::vector<ExperimentResult>(count), std::vector<at::Tensor>(count),
                 std::vector<std::string>(count)};
    testing::run_ranks("inproc", ranks, [&](const CommunicatorPtr& world) {
      at::set_num_threads(1);
      const int rank = world->rank();
      const auto i = static_cast<std::size_t>(rank);
      const ExperimentContext context{
          .world = world, .splits = splits, .folder = run.folder, .stop_asked = [&, rank] { return stop_asked(rank); }};
      try {
        run.results[i] = run_experiment(config, context);
        run.weights[i] = flat(run.results[i].model->parameters());
      } catch (const Error& error) {
        run.errors[i] = error.what();
      }
    });
    return run;
  }

  static RunFolder next_folder() {
    static int number = 0;
    const std::string path = ::testing::TempDir() + "/run" + std::to_string(++number);
    std::filesystem::remove_all(path);
    return RunFolder::create(path);
  }

  static Json summary(const Finished& run) { return Json::parse(read_file(run.folder.summary())); }

  static std::vector<Json> metrics(const Finished& run, const std::string& split) {
    std::istringstream text(read_file(run.folder.metrics()));
    std::vector<Json> lines;
    for (std::string line; std::getline(text, line);) {
      lines.push_back(Json::parse(line));
      if (lines.back().at("split") != split) lines.pop_back();
    }
    return lines;
  }

  template <class T>
  static std::vector<T> column(const std::vector<Json>& lines, const char* key) {
    std::vector<T> values;
    for (const auto& line : lines) values.push_back(line.at(key).get<T>());
    return values;
  }

  static std::vector<std::string> keys_of(const Json& object) {
    std::vector<std::string> keys;
    for (const auto& [key, value] : object.items()) keys.push_back(key);
    return keys;
  }

  static double reading(const Finished& run, std::size_t rank, const std::string& name) {
    for (const auto& [key, value] : run.results.at(rank).test) {
      if (key == name) return value;
    }
    ADD_FAILURE() << "no " << name;
    return 0;
  }
};

TEST_F(ExperimentTest, TheSameSeedTwiceGivesBitwiseTheSameWeights) {
  for (const int ranks : {1, 3}) {
    const auto first = run(ranks), second = run(ranks);
    EXPECT_TRUE(at::equal(first.weights[0], second.weights[0])) << ranks << " ranks";
    EXPECT_EQ(first.results[0].test, second.results[0].test) << ranks << " ranks";
  }
}

TEST_F(ExperimentTest, AnotherSeedGivesOthers) {
  EXPECT_FALSE(at::equal(run(1).weights[0], run(1, {"seed=4"}).weights[0]));
}

TEST_F(ExperimentTest, N2_TheResultDoesNotDependOnTheNumberOfRanks) {
  const auto alone = run(1);
  for (const int ranks : {2, 3, 4}) {
    const auto together = run(ranks);
    EXPECT_LT(relative_difference(together.weights[0], alone.weights[0]), 1e-5) << ranks << " ranks";
    EXPECT_NEAR(reading(together, 0, "loss"), reading(alone, 0, "loss"), 1e-5) << ranks << " ranks";
    EXPECT_DOUBLE_EQ(reading(together, 0, "accuracy"), reading(alone, 0, "accuracy")) << ranks << " ranks";
  }
}

TEST_F(ExperimentTest, MoreRanksThanSamplesInTheLastBatchChangeNothing) {
  const std::vector<std::string> changes{"dataset.train_samples=33", "dataset.test_samples=1"};  // a batch of 1
  const auto alone = run(1, changes), together = run(4, changes);
  EXPECT_EQ(together.results[0].steps, 6);
  EXPECT_LT(relative_difference(together.weights[0], alone.weights[0]), 1e-5);
}

TEST_F(ExperimentTest, N1_N3_ReplicasEndBitwiseEqual) {
  const auto three = run(3);
  EXPECT_TRUE(at::equal(three.weights[1], three.weights[0]));
  EXPECT_TRUE(at::equal(three.weights[2], three.weights[0]));
}

TEST_F(ExperimentTest, SingleEqualsAllReduceOnOneRank) {
  EXPECT_TRUE(at::equal(run(1, {"strategy=single"}).weights[0], run(1, {"strategy=all_reduce"}).weights[0]));
}

TEST_F(ExperimentTest, N5_BucketsOfAnySizeGiveTheSame) {
  const auto small = run(2, {"framework.bucket_bytes=1"}), large = run(2, {"framework.bucket_bytes=25MB"});
  EXPECT_LT(relative_difference(small.weights[0], large.weights[0]), 1e-6);
}

TEST_F(ExperimentTest, Q22_EveryRankKnowsTheTestOfAllSamples) {
  const auto three = run(3);
  for (const std::size_t rank : {1, 2}) EXPECT_EQ(three.results[rank].test, three.results[0].test);
  const double hits = reading(three, 0, "accuracy") * 26;
  EXPECT_NEAR(hits, std::round(hits), 1e-9) << "a share of 26 samples, padding not among them";
}

TEST_F(ExperimentTest, Learns) {
  const auto losses = column<double>(metrics(run(1, {"train.epochs=8"}), "train"), "loss");
  EXPECT_LT(losses.back(), losses.front() / 2);
}

TEST_F(ExperimentTest, SummaryHasThePromisedKeys) {
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
  EXPECT_EQ(text.at("test").at("accuracy"), reading(two, 0, "accuracy"));
  EXPECT_EQ(text.at("strategy"), Json({{"name", "all_reduce"}}));
}

TEST_F(ExperimentTest, S9_TheSummaryTellsWhatCompressionSaved) {
  const auto strategy = summary(run(2, {"strategy={name: all_reduce, compression: bf16}"})).at("strategy");
  EXPECT_EQ(strategy.at("compression_ratio"), 2);
  EXPECT_EQ(strategy.at("uncompressed_bytes"), 2 * strategy.at("sent_bytes").get<double>());
  EXPECT_GT(strategy.at("sent_bytes"), 0);
}

TEST_F(ExperimentTest, E8_MetricsHaveALineEveryFewStepsAndAtTheEndOfAnEpoch) {
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
  EXPECT_EQ(test.back().at("accuracy"), reading(two, 0, "accuracy"));
}

TEST_F(ExperimentTest, TestsAsOftenAsTheConfigSaysAndAlwaysAtTheEnd) {
  EXPECT_THAT(column<int>(metrics(run(1, {"evaluate.every_epochs=2"}), "test"), "step"), ElementsAre(8, 12));
  EXPECT_THAT(column<int>(metrics(run(1, {"evaluate.every_epochs=0"}), "test"), "step"), ElementsAre(12));
  EXPECT_THAT(column<int>(metrics(run(1, {"evaluate.every_epochs=3"}), "test"), "step"), ElementsAre(12)) << "once";
}

TEST_F(ExperimentTest, TheLastTestIsOfTheLastEpoch) {
  EXPECT_THAT(column<int>(metrics(run(1, {"evaluate.every_epochs=0"}), "test"), "epoch"), ElementsAre(2));
  EXPECT_THAT(column<int>(metrics(run(1, {"evaluate.every_epochs=0", "train.max_steps=5"}), "test"), "epoch"),
              ElementsAre(1));
}

TEST_F(ExperimentTest, TestingDoesNotChangeWhatIsLearned) {
  EXPECT_TRUE(
      at::equal(run(2, {"evaluate.every_epochs=1"}).weights[0], run(2, {"evaluate.every_epochs=0"}).weights[0]));
}

TEST_F(ExperimentTest, EndsAfterMaxSteps) {
  const auto two = run(2, {"train.max_steps=6"});
  EXPECT_EQ(two.results[0].steps, 6);
  EXPECT_EQ(two.results[1].steps, 6);
  EXPECT_FALSE(two.results[0].stopped) << "nobody asked";
  EXPECT_EQ(metrics(two, "train").back().at("step"), 6);
  EXPECT_EQ(metrics(two, "test").back().at("step"), 6);
}

TEST_F(ExperimentTest, MaxStepsBeyondTheLastEpochDoNothing) {
  EXPECT_EQ(run(1, {"train.max_steps=100"}).results[0].steps, 12);
}

TEST_F(ExperimentTest, L2_OneRankAskedToStopEndsAllCleanly) {
  int polls = 0;
  const auto three = run(3, {}, [&](int rank) { return rank == 1 && ++polls == 4; });
  for (const auto& result : three.results) {
    EXPECT_EQ(result.steps, 5) << "asked after step 4, agreed after step 5";
    EXPECT_TRUE(result.stopped);
  }
  EXPECT_EQ(summary(three).at("stopped"), true);
  EXPECT_EQ(summary(three).at("steps"), 5);
  EXPECT_TRUE(std::filesystem::exists(three.folder.weights()));
  EXPECT_EQ(metrics(three, "test").size(), 1u) << "of the epoch that was whole";
}

TEST_F(ExperimentTest, AStoppedRunIsNotHeldToItsExpectation) {
  const auto one = run(1, {"expect.test_accuracy=1"}, [](int) { return true; });
  EXPECT_EQ(one.errors[0], "");
  EXPECT_TRUE(one.results[0].stopped);
}

TEST_F(ExperimentTest, AnExpectationThatIsNotReachedIsAnErrorOnEveryRankAndStillLeavesTheRun) {
  const auto two = run(2, {"expect.test_accuracy=1", "train.max_steps=1"});
  EXPECT_THAT(two.errors, Each(HasSubstr("expect.test_accuracy asks for 1")));
  EXPECT_TRUE(std::filesystem::exists(two.folder.summary()));
  EXPECT_TRUE(std::filesystem::exists(two.folder.weights()));
}

TEST_F(ExperimentTest, AnExpectationThatIsReachedIsNone) {
  EXPECT_THAT(run(2, {"expect.test_accuracy=0.05"}).errors, Each(""));
}

TEST_F(ExperimentTest, WritesTheWeightsOfTheLastStep) {
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

TEST_F(ExperimentTest, WritesNoWeightsWhereNoneAreWanted) {
  EXPECT_FALSE(std::filesystem::exists(run(1, {"checkpoint.final_weights=false"}).folder.weights()));
}

TEST_F(ExperimentTest, E2_AveragesAreTestedAndKeptAndChangeNoTraining) {
  const auto plain = run(1), averaged = run(1, {"train.ema_decay=0.9"});
  EXPECT_TRUE(at::equal(averaged.weights[0], plain.weights[0]));
  EXPECT_NE(summary(averaged).at("test").at("loss"), summary(plain).at("test").at("loss"));
  std::vector<at::Tensor> kept;
  for (const auto& [name, tensor] : load_safetensors(averaged.folder.weights())) kept.push_back(tensor);
  const double difference = relative_difference(flat(kept), plain.weights[0]);
  EXPECT_GT(difference, 1e-3);
  EXPECT_LT(difference, 0.5);
}

TEST_F(ExperimentTest, E2_ClippingIsByTheNormOverAllRanks) {
  const auto free = run(1), clipped = run(1, {"train.clip_norm=0.2"}),
             sharded = run(2, {"train.clip_norm=0.2", "strategy=sharded"});
  EXPECT_LT(relative_difference(sharded.weights[0], clipped.weights[0]), 1e-5);
  EXPECT_GT(relative_difference(free.weights[0], clipped.weights[0]), 1e-2);
  const auto by_value = run(1, {"train.clip_value=0.01"});
  EXPECT_GT(relative_difference(free.weights[0], by_value.weights[0]), 1e-2);
}

TEST_F(ExperimentTest, RefusesAMeshThatIsNotTheWorld) {
  EXPECT_THAT(run(2, {"mesh.data=3"}).errors, Each("mesh.data is 3, but the world has 2 ranks; 0 takes all"));
  EXPECT_THAT(run(2, {"mesh.data=2"}).errors, Each(""));
}

TEST_F(ExperimentTest, RefusesTheSingleStrategyOnSeveralRanks) {
  EXPECT_THAT(run(2, {"strategy=single"}).errors, Each(HasSubstr("strategy single trains on one rank")));
}

TEST_F(ExperimentTest, AScheduleDecidesTheLearningRate) {
  const auto constant = run(1), cosine = run(1, {"schedule=cosine"});
  EXPECT_FALSE(at::equal(constant.weights[0], cosine.weights[0]));
  // The whole schedule lies in the steps that are taken: with factor 1 at step 0 a run of one step is the same.
  EXPECT_TRUE(
      at::equal(run(1, {"train.max_steps=1"}).weights[0], run(1, {"train.max_steps=1", "schedule=cosine"}).weights[0]));
}

TEST_F(ExperimentTest, PlateauSeesEveryTest) {
  // No test is better by so much than the first, so after the second the learning rate is 0.
  const std::string plateau =
      "schedule={name: plateau, patience: 0, threshold: 1000, threshold_is: absolute, gamma: 0}";
  const auto two = run(2, {plateau, "train.epochs=2"}), four = run(2, {plateau, "train.epochs=4"});
  EXPECT_TRUE(at::equal(four.weights[0], two.weights[0]));
  EXPECT_TRUE(at::equal(run(2, {"train.epochs=2"}).weights[0], two.weights[0])) << "until then nothing has changed";
}

TEST_F(ExperimentTest, RefusesAScheduleThatWatchesWhatIsNotMeasured) {
  EXPECT_THAT(run(2, {"schedule={name: plateau, metric: auc}"}).errors,
              Each("the schedule watches \"auc\", which none of evaluate.meters reads; add the meter"));
  EXPECT_THAT(run(2, {"schedule={name: plateau, metric: auc}", "evaluate.meters=[{meter: auc}]"}).errors, Each(""));
}

TEST_F(ExperimentTest, E7_MetersAreChosen) {
  const auto two = run(2, {"evaluate.meters=[{meter: {name: class_error, k: 3}}, {meter: recall}]",
                           "watch.meters=[{meter: perplexity}, {meter: {name: moving_average, window: 2}}]"});
  EXPECT_THAT(keys_of(summary(two).at("test")), ElementsAre("class_error_top3", "recall"));
  const auto lines = metrics(two, "train");
  EXPECT_THAT(keys_of(lines.at(0)), ::testing::IsSupersetOf({"perplexity", "moving_loss", "moving_loss_std"}));
  EXPECT_EQ(lines.at(0).count("loss"), 0u);
}

TEST_F(ExperimentTest, E7_EveryMeterOfClassesReadsTheSameOnAllRanks) {
  std::string meters;
  for (const char* name : {"accuracy", "auc", "average", "average_precision", "class_error", "confusion",
                           "mean_average_precision", "multi_label_confusion", "ndcg", "precision", "precision_at_k"}) {
    meters += std::string("{meter: ") + name + "}, ";
  }
  const auto three = run(3, {"evaluate.meters=[" + meters + "{meter: recall}]"});
  EXPECT_THAT(three.errors, Each(""));
  for (const std::size_t rank : {1, 2}) EXPECT_EQ(three.results[rank].test, three.results[0].test);
}

TEST_F(ExperimentTest, RefusesAMeterOfAnotherTask) {
  EXPECT_THAT(run(2, {"evaluate.meters=[{meter: mse}]"}).errors,
              Each(HasSubstr("mse wants as many outputs as targets")));
}

TEST_F(ExperimentTest, E2_PrefetchingChangesNoBit) {
  EXPECT_TRUE(at::equal(run(2).weights[0], run(2, {"loader.prefetch=3"}).weights[0]));
}

TEST_F(ExperimentTest, WithoutShufflingEveryEpochHasTheOrderOfTheData) {
  EXPECT_FALSE(at::equal(run(1).weights[0], run(1, {"loader.shuffle=false"}).weights[0]));
  EXPECT_TRUE(at::equal(run(1, {"loader.shuffle=false"}).weights[0], run(1, {"loader.shuffle=false"}).weights[0]));
}

}  // namespace
}  // namespace phalanx
