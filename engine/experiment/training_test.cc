// What section `train` asks for: precision, averages, tests while training, early stopping.
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "engine/checkpoint/safetensors.h"
#include "engine/experiment/experiment.h"
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

// 4 steps an epoch, 24 in all.
constexpr const char* kTiny = R"(
name: tiny
seed: 3
model: {name: mlp, hidden: [16]}
dataset: {name: digits, train_samples: 100, test_samples: 26, side: 16}
optimizer: {name: sgd, lr: 0.05, momentum: 0.9}
framework: {bucket_bytes: 4KB}
train: {global_batch_size: 32, epochs: 6}
evaluate: {global_batch_size: 16, every_epochs: 0}
watch: {every_steps: 1, progress: false}
)";

struct Finished {
  RunFolder folder;
  std::vector<ExperimentResult> results;  // by rank, as the rest
  std::vector<at::Tensor> weights;
  std::vector<std::string> errors;
};

class Training : public ::testing::Test {
 protected:
  using Changes = std::vector<std::string>;
  using AddHooks = std::function<void(Engine& engine, int rank)>;

  static Finished run(
      int ranks, const Changes& changes, const AddHooks& add_hooks = [](Engine&, int) {}) {
    ExperimentConfig config;
    config::load_text(config, kTiny, "tiny.yaml", changes);
    const auto splits = config.dataset.make();
    const auto count = static_cast<std::size_t>(ranks);
    Finished run{next_folder(), std::vector<ExperimentResult>(count), std::vector<at::Tensor>(count),
                 std::vector<std::string>(count)};
    testing::run_ranks("inproc", ranks, [&](const CommunicatorPtr& world) {
      at::set_num_threads(1);
      const auto i = static_cast<std::size_t>(world->rank());
      const ExperimentContext context{
          .world = world, .splits = splits, .folder = run.folder, .add_hooks = [&](Engine& engine) {
            add_hooks(engine, world->rank());
          }};
      try {
        run.results[i] = run_experiment(config, context);
        run.weights[i] = flat(run.results[i].model->parameters());
      } catch (const Error& error) {
        run.errors[i] = error.what();
      }
    });
    return run;
  }

  static at::Tensor flat(const std::vector<at::Tensor>& tensors) {
    std::vector<at::Tensor> parts;
    for (const auto& tensor : tensors) parts.push_back(tensor.detach().flatten());
    return at::cat(parts);
  }

  static at::Tensor kept(const Finished& run) {
    std::vector<at::Tensor> tensors;
    for (const auto& [name, tensor] : load_safetensors(run.folder.weights())) tensors.push_back(tensor);
    return flat(tensors);
  }

  static RunFolder next_folder() {
    static int number = 0;
    const std::string path = ::testing::TempDir() + "/training" + std::to_string(++number);
    std::filesystem::remove_all(path);
    return RunFolder::create(path);
  }

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

  static double of(const Readings& readings, const std::string& name) {
    const auto found = std::ranges::find(readings, name, &Readings::value_type::first);
    if (found != readings.end()) return found->second;
    ADD_FAILURE() << "no " << name;
    return 0;
  }

  static double difference(const at::Tensor& a, const at::Tensor& b) {
    return ((a - b).norm() / b.norm()).item<double>();
  }
};

TEST_F(Training, S4_HalfPrecisionFollowsFloat32) {
  const auto full = run(1, {});
  for (const std::string precision : {"bf16", "fp16"}) {
    for (const std::string strategy : {"all_reduce", "overlapped", "sharded"}) {
      const auto half =
          run(2, {"train.precision=" + precision, "strategy=" + strategy, "train.loss_scale.initial=1024"});
      ASSERT_THAT(half.errors, Each(""));
      const double apart = difference(half.weights[0], full.weights[0]);
      EXPECT_LT(apart, precision == "bf16" ? 0.1 : 0.1 / 8) << precision << strategy << ": fp16 has 3 bits more";
      EXPECT_GT(apart, 1e-6) << "computed otherwise";
      EXPECT_EQ(half.weights[0].scalar_type(), at::kFloat);
      EXPECT_TRUE(at::equal(half.weights[1], half.weights[0]));
    }
  }
}

// Samples that were trained on before a test within a window still count for it, with their time. A step takes 20 ms at
// least, so three take 60: fewer seconds cannot be in the first window.
TEST_F(Training, ThroughputLeavesOutTestsAndNothingElse) {
  const auto tested =
      run(1, {"train.epochs=1", "watch.every_steps=3", "evaluate.every_steps=2"}, [](Engine& engine, int) {
        engine.on(Event::kSample, [](State&) { std::this_thread::sleep_for(std::chrono::milliseconds(20)); });
      });
  ASSERT_THAT(tested.errors, Each(""));
  const auto lines = metrics(tested, "train");
  EXPECT_THAT(column<int>(lines, "step"), ElementsAre(3, 4));
  const auto rates = column<double>(lines, "samples_per_second");
  EXPECT_LE(rates.at(0), 3 * 32 / 0.06);
  EXPECT_LE(rates.at(1), 4 / 0.02);
}

TEST_F(Training, ANameThatIsNoUtf8SpoilsNoRun) {
  const auto named = run(1, {"train.epochs=1", "name=caf\xe9"});
  EXPECT_THAT(named.errors, Each(""));
  EXPECT_EQ(Json::parse(read_file(named.folder.summary())).at("name"), "caf\xef\xbf\xbd");
  EXPECT_TRUE(std::filesystem::exists(named.folder.report()));
}

TEST_F(Training, S4_TheSameConfigGivesTheSameBits) {
  for (const std::string precision : {"bf16", "fp16"}) {
    EXPECT_TRUE(at::equal(run(2, {"train.precision=" + precision}).weights[0],
                          run(2, {"train.precision=" + precision}).weights[0]));
  }
}

// Gradients that are multiplied, added up over parts and ranks, divided again and then clipped.
TEST_F(Training, S4_LossScalesDoNotShowInClippingAccumulationOrShards) {
  const Changes clipped{"train.clip_norm=0.2", "train.accumulate=3"};
  const auto full = run(1, clipped);
  for (const std::string strategy : {"all_reduce", "overlapped", "sharded"}) {
    auto changes = clipped;
    changes.insert(changes.end(), {"train.precision=fp16", "strategy=" + strategy, "train.loss_scale.initial=1024"});
    const auto half = run(2, changes);
    EXPECT_LT(difference(half.weights[0], full.weights[0]), 0.005) << strategy;
    EXPECT_EQ(of(half.results[0].update, "updates_left_out"), 0);
    const auto norms = column<double>(metrics(half, "train"), "gradient_norm"),
               full_norms = column<double>(metrics(full, "train"), "gradient_norm");
    for (std::size_t i = 0; i < norms.size(); ++i) EXPECT_NEAR(norms[i], full_norms[i], 0.03 * full_norms[i]) << i;
  }
}

TEST_F(Training, S4_AnOverflowOnOneRankIsLeftOutByAll) {
  for (const std::string strategy : {"all_reduce", "sharded", "{name: local_sgd, every: 4}"}) {
    const auto poisoned = run(3, {"train.precision=fp16", "train.loss_scale.initial=1024", "strategy=" + strategy},
                              [](Engine& engine, int rank) {
                                engine.on(Event::kBackward, [&engine, rank](State& state) {
                                  if (rank != 1 || state.step != 5) return;
                                  at::Tensor gradients = engine.slices().at(0).gradients;
                                  gradients.fill_(std::numeric_limits<float>::infinity());
                                });
                              });
    ASSERT_THAT(poisoned.errors, Each(""));
    for (const auto& result : poisoned.results) {
      EXPECT_EQ(of(result.update, "updates_left_out"), 1) << strategy;
      EXPECT_EQ(of(result.update, "loss_scale"), 512) << strategy;
    }
    EXPECT_TRUE(at::equal(poisoned.weights[1], poisoned.weights[0])) << strategy;
    EXPECT_TRUE(std::isfinite(poisoned.weights[0].sum().item<float>())) << strategy;
    const auto scales = column<double>(metrics(poisoned, "train"), "loss_scale");
    EXPECT_EQ(scales.at(4), 1024);
    EXPECT_EQ(scales.at(5), 512) << "in the step that was left out";
  }
}

TEST_F(Training, S4_TheLossScaleGrowsAfterGoodSteps) {
  const auto grown = run(2, {"train.precision=fp16", "train.loss_scale={initial: 16, growth_interval: 10}"});
  EXPECT_EQ(of(grown.results[1].update, "loss_scale"), 64) << "24 good steps";
  const auto summary = Json::parse(read_file(grown.folder.summary()));
  EXPECT_EQ(summary.at("update").at("loss_scale"), 64);
  EXPECT_EQ(summary.at("update").at("updates_left_out"), 0);
}

TEST_F(Training, S4_AScaleThatIsTooLargeIsFoundByTrying) {
  const auto large = run(2, {"train.precision=fp16", "train.loss_scale.initial=16777216"});
  EXPECT_THAT(large.errors, Each(""));
  EXPECT_GT(of(large.results[0].update, "updates_left_out"), 0);
  EXPECT_LT(of(large.results[0].update, "loss_scale"), 16777216);
}

TEST_F(Training, S4_Fp16RefusesCompressionThatWouldRememberAnOverflow) {
  EXPECT_THAT(run(2, {"train.precision=fp16", "strategy={name: overlapped, compression: bf16}"}).errors,
              Each(HasSubstr("train.precision: fp16 does not go with strategy.compression")));
  EXPECT_THAT(run(2, {"train.precision=bf16", "strategy={name: overlapped, compression: bf16}"}).errors, Each(""));
}

TEST_F(Training, ChannelsLastFollowsContiguousAndKeepsTheSameTensors) {
  const Changes lenet{"model=lenet"};
  const auto contiguous = run(2, lenet), last = run(2, {"model=lenet", "train.memory_format=channels_last"});
  EXPECT_LT(difference(last.weights[0], contiguous.weights[0]), 1e-5);
  const auto one = load_safetensors(contiguous.folder.weights()), other = load_safetensors(last.folder.weights());
  ASSERT_EQ(one.size(), other.size());
  for (std::size_t i = 0; i < one.size(); ++i) {
    EXPECT_EQ(other[i].first, one[i].first);
    EXPECT_EQ(other[i].second.sizes(), one[i].second.sizes());
    EXPECT_LT(difference(other[i].second, one[i].second), 1e-3) << "in the same order of elements";
  }
}

TEST_F(Training, RefusesWhatModelOrSamplesDoNotHave) {
  EXPECT_THAT(run(2, {"train.sync_batch_norm=true"}).errors, Each(HasSubstr("the model has no batch norm")));
  EXPECT_THAT(run(2, {"train.checkpoint_activations=2"}).errors, Each(HasSubstr("the model has no blocks")));
  EXPECT_THAT(run(1, {"train.early_stop.metric=auc"}).errors, Each(HasSubstr("train.early_stop.metric is \"auc\"")));
}

// S7: each rank averages what it updates, and all see all of it.
TEST_F(Training, E2_AveragesOfShardsAreThoseOfOneRank) {
  const Changes averaged{"train.ema_decay=0.9", "evaluate.every_epochs=1"};
  const auto one = run(1, averaged);
  for (const int ranks : {2, 3}) {
    const auto sharded = run(ranks, {averaged[0], averaged[1], "strategy=sharded"});
    ASSERT_THAT(sharded.errors, Each(""));
    EXPECT_LT(difference(sharded.weights[0], one.weights[0]), 1e-5) << "training does not see them";
    EXPECT_LT(difference(kept(sharded), kept(one)), 1e-5);
    EXPECT_GT(difference(kept(one), one.weights[0]), 1e-3);
    EXPECT_TRUE(at::equal(sharded.weights[1], sharded.weights[0]));
    for (std::size_t i = 0; i < one.results[0].test.size(); ++i) {
      EXPECT_NEAR(sharded.results[1].test[i].second, one.results[0].test[i].second, 1e-4);
    }
  }
}

TEST_F(Training, E8_TheNormOfGradientsIsMeasuredBeforeItIsClipped) {
  const auto lines = metrics(run(2, {"train.clip_norm=0.01"}), "train");
  for (const double norm : column<double>(lines, "gradient_norm")) EXPECT_GT(norm, 0.01);
  EXPECT_FALSE(metrics(run(1, {}), "train").front().contains("gradient_norm"));
}

TEST_F(Training, TestsAfterEveryFewSteps) {
  const auto steps = [](const Changes& changes) { return column<int>(metrics(run(2, changes), "test"), "step"); };
  EXPECT_THAT(steps({"evaluate.every_steps=7"}), ElementsAre(7, 14, 21, 24));
  EXPECT_THAT(steps({"evaluate.every_steps=6"}), ElementsAre(6, 12, 18, 24)) << "12 and 24 end epochs";
  EXPECT_THAT(steps({"evaluate.every_steps=6", "evaluate.every_epochs=2"}), ElementsAre(6, 8, 12, 16, 18, 24));
  EXPECT_THAT(steps({"evaluate.every_steps=3", "train.max_steps=6"}), ElementsAre(3, 6));
}

TEST_F(Training, TestsWhileTrainingChangeNothing) {
  EXPECT_TRUE(at::equal(run(2, {"evaluate.every_steps=3"}).weights[0], run(2, {}).weights[0]));
}

// No test is better by so much than the first, so after the second the learning rate is 0.
TEST_F(Training, PlateauSeesTestsAfterSteps) {
  const std::string plateau =
      "schedule={name: plateau, patience: 0, threshold: 1000, threshold_is: absolute, gamma: 0}";
  const auto run_steps = [&](int steps) {
    return run(2, {plateau, "evaluate.every_steps=3", "train.max_steps=" + std::to_string(steps)}).weights[0];
  };
  EXPECT_TRUE(at::equal(run_steps(9), run_steps(6)));
  EXPECT_FALSE(at::equal(run_steps(6), run_steps(5)));
}

TEST_F(Training, StopsEarlyOnAllRanksAndSaysWhy) {
  // Nothing is better than the first test by 10, so the third test is the last.
  const Changes early{"evaluate.every_steps=3", "train.early_stop={metric: accuracy, patience: 1, min_delta: 10}"};
  const auto stopped = run(3, early);
  for (const auto& result : stopped.results) {
    EXPECT_EQ(result.steps, 9);
    EXPECT_FALSE(result.stopped) << "nobody asked for it";
    EXPECT_THAT(result.early_stop, HasSubstr("at step 3, and no better in 2 tests since"));
  }
  EXPECT_THAT(column<int>(metrics(stopped, "test"), "step"), ElementsAre(3, 6, 9)) << "and no test more";
  const auto summary = Json::parse(read_file(stopped.folder.summary()));
  EXPECT_EQ(summary.at("early_stop"), stopped.results[0].early_stop);
  EXPECT_EQ(summary.at("steps"), 9);
  EXPECT_EQ(Json::parse(read_file(run(1, {}).folder.summary())).at("early_stop"), "");
}

TEST_F(Training, StopsEarlyAtTheEndOfAnEpochToo) {
  const auto stopped =
      run(2, {"evaluate.every_epochs=1", "train.early_stop={metric: loss, best: lowest, patience: 0, min_delta: 99}"});
  EXPECT_EQ(stopped.results[0].steps, 8);
  EXPECT_THAT(column<int>(metrics(stopped, "test"), "step"), ElementsAre(4, 8));
}

}  // namespace
}  // namespace phalanx
