// SPDX-License-Identifier: Apache-2.0
// Tests section `train` of the config: precision, averages, tests during training, early stopping.
#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <gmock/gmock.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>
#include <string>
#include <thread>

#include "engine/testing/run.h"
#include "framework/base/files.h"
#include "framework/base/storage/safetensors.h"

namespace phalanx {
namespace {

using ::testing::AllOf;
using testing::Changes;
using testing::column;
using ::testing::Each;
using ::testing::ElementsAre;
using testing::final_weights;
using testing::Finished;
using ::testing::Gt;
using ::testing::HasSubstr;
using testing::Interference;
using testing::Json;
using testing::metric;
using testing::metrics;
using testing::new_folder;
using ::testing::Not;
using testing::relative_difference;
using testing::run_tiny;
using ::testing::SizeIs;
using testing::summary;

// Trains for 24 steps, with a line of metrics after each, and a test at the end.
Finished train_steps(int ranks, const Changes& changes, const Interference& interference = {}) {
  Changes all{"train.epochs=6", "evaluate.every_epochs=0", "watch.every_steps=1"};
  all.insert(all.end(), changes.begin(), changes.end());
  return run_tiny(ranks, new_folder(), all, interference);
}

TEST(Training, HalfPrecisionFollowsFloat32) {
  const auto full = train_steps(1, {});
  for (const std::string precision : {"bf16", "fp16"}) {
    for (const std::string strategy : {"all_reduce", "overlapped", "sharded"}) {
      const auto half =
          train_steps(2, {"train.precision=" + precision, "strategy=" + strategy, "train.loss_scale.initial=1024"});
      ASSERT_THAT(half.errors, Each(""));
      const double distance = relative_difference(half.weights[0], full.weights[0]);
      EXPECT_LT(distance, precision == "bf16" ? 0.1 : 0.1 / 8) << precision << strategy << ": fp16 has 3 bits more";
      EXPECT_GT(distance, 1e-6) << "computed in another way";
      EXPECT_EQ(half.weights[0].scalar_type(), at::kFloat);
      EXPECT_TRUE(at::equal(half.weights[1], half.weights[0]));
    }
  }
}

// Samples that were trained on before a test stay in their window, with their time. Each step takes at least 20 ms, so
// the first window of three steps takes at least 60 ms. A test takes 400 ms, 200 for each of its two batches. This time
// is in the seconds of the run, but in no window.
TEST(Training, ThroughputExcludesOnlyTheTimeOfTests) {
  const auto sleep = [](int milliseconds) {
    return [milliseconds](State&) { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); };
  };
  const auto tested =
      train_steps(1, {"train.epochs=1", "watch.every_steps=3", "evaluate.every_steps=2"},
                  {.add_hooks = [&](Engine& engine, int) { engine.on(Event::kSample, sleep(20)); },
                   .add_evaluation_hooks = [&](Evaluator& one) { one.on(Event::kSample, sleep(200)); }});
  ASSERT_THAT(tested.errors, Each(""));
  const auto lines = metrics(tested, "train");
  EXPECT_THAT(column<int>(lines, "step"), ElementsAre(3, 4));
  const auto rates = column<double>(lines, "samples_per_second");
  EXPECT_LE(rates.at(0), 3 * 32 / 0.06);
  EXPECT_LE(rates.at(1), 4 / 0.02);
  const auto seconds = column<double>(lines, "seconds");
  EXPECT_LE(3 * 32 / rates.at(0), seconds.at(0) - 0.4) << "the test after step 2 is excluded";
  EXPECT_LE(4 / rates.at(1), seconds.at(1) - seconds.at(0)) << "the second window begins where the first one ends";
}

// In an mlp each weight and sample needs one multiplication in forward, one for the gradient of the weights and, except
// in the first layer, one for the gradient of the inputs.
TEST(Training, OperationsPerSampleAreTheSameOnAnyMesh) {
  const double expected = 2.0 * (2 * 256 * 16 + 3 * 16 * 16 + 3 * 16 * 10);
  for (const Changes& changes : {Changes{"strategy=all_reduce"}, Changes{"mesh.pipe=2"}, Changes{"mesh.tensor=2"},
                                 Changes{"train.accumulate=2"}}) {
    Changes all{"model.hidden=[16, 16]", "train.max_steps=2"};
    all.insert(all.end(), changes.begin(), changes.end());
    const auto finished = run_tiny(2, new_folder(), all);
    ASSERT_THAT(finished.errors, Each(""));
    const auto products = summary(finished).at("matrix_products");
    EXPECT_EQ(products.at("operations_per_sample").get<double>(), expected) << changes[0];
    EXPECT_GT(products.at("share_of_peak").get<double>(), 0) << changes[0];
    EXPECT_LT(products.at("share_of_peak").get<double>(), 1) << changes[0];
  }
}

TEST(Training, ANameWithInvalidUtf8DoesNotEndARun) {
  const auto named = train_steps(1, {"train.epochs=1", "name=caf\xe9"});
  EXPECT_THAT(named.errors, Each(""));
  EXPECT_EQ(summary(named).at("name"), "caf\xef\xbf\xbd");
  EXPECT_TRUE(std::filesystem::exists(named.folder.report()));
}

TEST(Training, TheSameConfigGivesTheSameBits) {
  for (const std::string precision : {"bf16", "fp16"}) {
    EXPECT_TRUE(at::equal(train_steps(2, {"train.precision=" + precision}).weights[0],
                          train_steps(2, {"train.precision=" + precision}).weights[0]));
  }
}

// Gradients are multiplied by the scale, added up over parts and ranks, divided by the scale and then clipped.
TEST(Training, LossScalesDoNotAffectClippingAccumulationOrShards) {
  const Changes clipped{"train.clip_norm=0.2", "train.accumulate=3"};
  const auto full = train_steps(1, clipped);
  for (const std::string strategy : {"all_reduce", "overlapped", "sharded"}) {
    auto changes = clipped;
    changes.insert(changes.end(), {"train.precision=fp16", "strategy=" + strategy, "train.loss_scale.initial=1024"});
    const auto half = train_steps(2, changes);
    const double distance = relative_difference(half.weights[0], full.weights[0]);
    EXPECT_LT(distance, 0.005) << strategy;
    EXPECT_GT(distance, 1e-6) << strategy << ": computed in another way";
    EXPECT_EQ(metric(half.results[0].update, "skipped_updates"), 0);
    const auto norms = column<double>(metrics(half, "train"), "gradient_norm"),
               full_norms = column<double>(metrics(full, "train"), "gradient_norm");
    ASSERT_THAT(norms, SizeIs(24));
    ASSERT_THAT(full_norms, SizeIs(24));
    for (std::size_t i = 0; i < norms.size(); ++i) EXPECT_NEAR(norms[i], full_norms[i], 0.03 * full_norms[i]) << i;
  }
}

TEST(Training, AllRanksSkipAStepThatOverflowsOnOne) {
  for (const std::string strategy : {"auto", "all_reduce", "sharded", "{name: local_sgd, every: 4}"}) {
    const auto poisoned =
        train_steps(3, {"train.precision=fp16", "train.loss_scale.initial=1024", "strategy=" + strategy},
                    {.add_hooks = [](Engine& engine, int rank) {
                      engine.on(Event::kBackward, [&engine, rank](State& state) {
                        if (rank != 1 || state.step != 5) return;
                        at::Tensor gradients = engine.slices().at(0).gradients;
                        gradients.fill_(std::numeric_limits<float>::infinity());
                      });
                    }});
    ASSERT_THAT(poisoned.errors, Each(""));
    for (const auto& result : poisoned.results) {
      EXPECT_EQ(metric(result.update, "skipped_updates"), 1) << strategy;
      EXPECT_EQ(metric(result.update, "loss_scale"), 512) << strategy;
    }
    EXPECT_TRUE(at::equal(poisoned.weights[1], poisoned.weights[0])) << strategy;
    EXPECT_TRUE(std::isfinite(poisoned.weights[0].sum().item<float>())) << strategy;
    const auto scales = column<double>(metrics(poisoned, "train"), "loss_scale");
    EXPECT_EQ(scales.at(4), 1024);
    EXPECT_EQ(scales.at(5), 512) << "in the step that was skipped";
  }
}

TEST(Training, TheLossScaleGrowsAfterGoodSteps) {
  const auto grown = train_steps(2, {"train.precision=fp16", "train.loss_scale={initial: 16, growth_interval: 10}"});
  EXPECT_EQ(metric(grown.results[1].update, "loss_scale"), 64) << "24 good steps";
  const auto update = summary(grown).at("update");
  EXPECT_EQ(update.at("loss_scale"), 64);
  EXPECT_EQ(update.at("skipped_updates"), 0);
}

TEST(Training, ALossScaleThatIsTooLargeIsLowered) {
  const auto large = train_steps(2, {"train.precision=fp16", "train.loss_scale.initial=16777216"});
  EXPECT_THAT(large.errors, Each(""));
  EXPECT_GT(metric(large.results[0].update, "skipped_updates"), 0);
  EXPECT_LT(metric(large.results[0].update, "loss_scale"), 16777216);
}

TEST(Training, Bf16GoesWithCompression) {
  EXPECT_THAT(train_steps(2, {"train.precision=bf16", "strategy={name: overlapped, compression: bf16}"}).errors,
              Each(""));
}

TEST(Training, ChannelsLastFollowsContiguousAndKeepsTheSameTensors) {
  const Changes lenet{"model=lenet"};
  const auto contiguous = train_steps(2, lenet),
             last = train_steps(2, {"model=lenet", "train.memory_format=channels_last"});
  EXPECT_LT(relative_difference(last.weights[0], contiguous.weights[0]), 1e-5);
  const auto one = load_safetensors(contiguous.folder.weights()), other = load_safetensors(last.folder.weights());
  ASSERT_EQ(one.size(), other.size());
  for (std::size_t i = 0; i < one.size(); ++i) {
    EXPECT_EQ(other[i].first, one[i].first);
    EXPECT_EQ(other[i].second.sizes(), one[i].second.sizes());
    EXPECT_LT(relative_difference(other[i].second, one[i].second), 1e-3) << "in the same order of elements";
  }
}

TEST(Training, RefusesOptionsThatModelOrSamplesDoNotSupport) {
  EXPECT_THAT(train_steps(2, {"train.sync_batch_norm=true"}).errors, Each(HasSubstr("the model has no batch norm")));
  EXPECT_THAT(train_steps(2, {"train.checkpoint_activations=2"}).errors, Each(HasSubstr("the model has no blocks")));
  EXPECT_THAT(train_steps(1, {"train.early_stop.metric=auc"}).errors,
              Each(HasSubstr("train.early_stop.metric is \"auc\"")));
}

// Lists each model that has the interface, without a table of their names.
TEST(Training, ErrorsNameTheModelsThatSupportAnOption) {
  const auto lists_chains = AllOf(HasSubstr("is not a chain of blocks"), HasSubstr("chain_under_test"),
                                  HasSubstr("gpt"), Not(HasSubstr("two_towers_under_test")));
  const std::string model = "model=norms_under_test";
  EXPECT_THAT(train_steps(2, {model, "mesh.pipe=2"}).errors, Each(lists_chains));
  EXPECT_THAT(train_steps(2, {model, "strategy={name: sharded, stage: 3}"}).errors, Each(lists_chains));
  EXPECT_THAT(train_steps(2, {model, "train.checkpoint_activations=2"}).errors,
              Each(AllOf(HasSubstr("the model has no blocks"), HasSubstr("chain_under_test"),
                         Not(HasSubstr("two_towers_under_test")), Not(HasSubstr("moe_gpt")))));
  EXPECT_THAT(train_steps(2, {model, "mesh.expert=2"}).errors,
              Each(HasSubstr("has no experts; use one that has (moe_gpt)")));
  const Changes chain{"model=chain_under_test"};
  EXPECT_THAT(train_steps(2, {chain[0], "mesh.pipe=2"}).errors, Each(""));
  EXPECT_THAT(train_steps(2, {chain[0], "strategy={name: sharded, stage: 3}"}).errors, Each(""));
  EXPECT_THAT(train_steps(2, {chain[0], "train.checkpoint_activations=1"}).errors, Each(""));
}

// Each rank averages the parameters that it updates, and all ranks evaluate all averages.
TEST(Training, ShardedMovingAveragesEqualTheAveragesOnOneRank) {
  const Changes averaged{"train.ema_decay=0.9", "evaluate.every_epochs=1"};
  const auto one = train_steps(1, averaged);
  for (const int ranks : {2, 3}) {
    const auto sharded = train_steps(ranks, {averaged[0], averaged[1], "strategy=sharded"});
    ASSERT_THAT(sharded.errors, Each(""));
    EXPECT_LT(relative_difference(sharded.weights[0], one.weights[0]), 1e-5) << "training does not depend on averages";
    EXPECT_LT(relative_difference(final_weights(sharded), final_weights(one)), 1e-5);
    EXPECT_GT(relative_difference(final_weights(one), one.weights[0]), 1e-3);
    EXPECT_TRUE(at::equal(sharded.weights[1], sharded.weights[0]));
    ASSERT_THAT(one.results[0].test, SizeIs(2)) << "loss and accuracy";
    for (std::size_t i = 0; i < one.results[0].test.size(); ++i) {
      EXPECT_NEAR(sharded.results[1].test[i].second, one.results[0].test[i].second, 1e-4);
    }
  }
}

// Laps of the clock follow each other without gaps, so their order describes an update: unscaling with the vote of the
// ranks, the norm with its sum over the ranks, and finally clipping, the update itself and averages.
TEST(Training, WrappersOfAnUpdateCountAsUpdateAndTheirSumsAsCommunication) {
  const auto phases = [](const Changes& changes) {
    Changes traced{"watch.profile={from: 2, to: 2, operators: false}", "train.max_steps=2"};
    traced.insert(traced.end(), changes.begin(), changes.end());
    const auto trace = Json::parse(read_file(train_steps(2, traced).folder.trace())).at("traceEvents");
    std::string names;
    for (const auto& event : trace) {
      if (event.at("pid") != 1 || event.at("ph") != "X") continue;
      const std::string name = event.at("name");
      if (name == "update" || name == "communication") names += name + " ";
    }
    return names;
  };
  EXPECT_EQ(phases({}), "communication update communication ");
  EXPECT_EQ(phases({"train.clip_value=1"}), "communication update communication ");
  EXPECT_EQ(phases({"train.clip_norm=1"}), "communication update communication update communication ");
  EXPECT_EQ(phases({"train.precision=fp16", "train.clip_norm=1", "train.ema_decay=0.9"}),
            "communication update communication update communication update communication ");
}

TEST(Training, TheNormOfGradientsIsMeasuredBeforeItIsClipped) {
  const auto lines = metrics(train_steps(2, {"train.clip_norm=0.01"}), "train");
  EXPECT_THAT(column<double>(lines, "gradient_norm"), AllOf(SizeIs(24), Each(Gt(0.01))));
  EXPECT_FALSE(metrics(train_steps(1, {}), "train").front().contains("gradient_norm"));
}

TEST(Training, TestsAfterEveryFewSteps) {
  const auto steps = [](const Changes& changes) {
    return column<int>(metrics(train_steps(2, changes), "test"), "step");
  };
  EXPECT_THAT(steps({"evaluate.every_steps=7"}), ElementsAre(7, 14, 21, 24));
  EXPECT_THAT(steps({"evaluate.every_steps=6"}), ElementsAre(6, 12, 18, 24)) << "12 and 24 end epochs";
  EXPECT_THAT(steps({"evaluate.every_steps=6", "evaluate.every_epochs=2"}), ElementsAre(6, 8, 12, 16, 18, 24));
  EXPECT_THAT(steps({"evaluate.every_steps=3", "train.max_steps=6"}), ElementsAre(3, 6));
}

TEST(Training, TestsWhileTrainingChangeNothing) {
  EXPECT_TRUE(at::equal(train_steps(2, {"evaluate.every_steps=3"}).weights[0], train_steps(2, {}).weights[0]));
}

// No test exceeds the first by the threshold, so the learning rate is 0 after the second.
TEST(Training, PlateauSeesTestsAfterSteps) {
  const std::string plateau =
      "schedule={name: plateau, patience: 0, threshold: 1000, threshold_is: absolute, gamma: 0}";
  const auto run_steps = [&](int steps) {
    return train_steps(2, {plateau, "evaluate.every_steps=3", "train.max_steps=" + std::to_string(steps)}).weights[0];
  };
  EXPECT_TRUE(at::equal(run_steps(9), run_steps(6)));
  EXPECT_FALSE(at::equal(run_steps(6), run_steps(5)));
}

TEST(Training, StopsEarlyOnAllRanksAndSaysWhy) {
  // No test exceeds the first by 10, so the third test is the last.
  const Changes early{"evaluate.every_steps=3", "train.early_stop={metric: accuracy, patience: 1, min_delta: 10}"};
  const auto stopped = train_steps(3, early);
  for (const auto& result : stopped.results) {
    EXPECT_EQ(result.steps, 9);
    EXPECT_FALSE(result.stopped) << "no rank was asked to stop";
    EXPECT_THAT(result.early_stop, HasSubstr("at step 3, and no better in 2 tests since"));
  }
  EXPECT_THAT(column<int>(metrics(stopped, "test"), "step"), ElementsAre(3, 6, 9)) << "and no further test";
  const auto saved = summary(stopped);
  EXPECT_EQ(saved.at("early_stop"), stopped.results[0].early_stop);
  EXPECT_EQ(saved.at("steps"), 9);
  EXPECT_EQ(summary(train_steps(1, {})).at("early_stop"), "");
}

TEST(Training, StopsEarlyAtTheEndOfAnEpochToo) {
  const auto stopped = train_steps(
      2, {"evaluate.every_epochs=1", "train.early_stop={metric: loss, best: lowest, patience: 0, min_delta: 99}"});
  EXPECT_EQ(stopped.results[0].steps, 8);
  EXPECT_THAT(column<int>(metrics(stopped, "test"), "step"), ElementsAre(4, 8));
}

}  // namespace
}  // namespace phalanx
