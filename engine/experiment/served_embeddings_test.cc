// SPDX-License-Identifier: Apache-2.0
// Tests embeddings on parameter servers in whole runs.
#include <ATen/ops/argsort.h>
#include <ATen/ops/concat.h>
#include <ATen/ops/equal.h>
#include <gmock/gmock.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/checkpoint/folder.h"
#include "engine/checkpoint/run_state.h"
#include "engine/experiment/evaluate.h"
#include "engine/testing/run.h"
#include "framework/base/error.h"
#include "framework/base/storage/safetensors.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

using ::testing::AllOf;
using testing::Changes;
using testing::column;
using ::testing::Each;
using testing::Finished;
using ::testing::HasSubstr;
using testing::metric;
using testing::metrics;
using testing::new_folder;
using testing::run_tiny;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr const char* kClicks =
    "dataset={name: clicks, train_samples: 160, test_samples: 20, features: 3, keys: 50, dense: 2}";

// Returns the changes for a run of 20 steps.
Changes changes_of(const std::string& embeddings, const Changes& changes) {
  Changes all{kClicks,
              "model={name: dlrm, dim: 4, bottom: [8], top: [8], embeddings: " + embeddings + "}",
              "optimizer={name: sgd, lr: 0.5}",
              "schedule=constant",
              "train={global_batch_size: 16, epochs: 2}",
              "watch.every_steps=1",
              "expect={}"};
  all.insert(all.end(), changes.begin(), changes.end());
  return all;
}

Finished run_embeddings(int ranks, const std::string& embeddings, const Changes& changes = {},
                        const RunFolder& folder = new_folder(), const testing::Interference& interference = {}) {
  return run_tiny(ranks, folder, changes_of(embeddings, changes), interference);
}

// With scale 0 all rows start equal. With staleness 0 and no cache each step reads the values that the step before has
// pushed.
TEST(ServedEmbeddings, AreTrainedLikeEmbeddingsOfTheModel) {
  const auto local = run_embeddings(1, "{name: local, scale: 0}");
  const auto served =
      run_embeddings(1, "{name: servers, scale: 0, staleness: 0, cache_staleness: 0, rule: sgd, lr: 0.5}");
  const auto constant =
      run_embeddings(1, "{name: servers, scale: 0, staleness: 0, cache_staleness: 0, rule: sgd, lr: 0.000001}");
  ASSERT_THAT(local.errors, Each(""));
  ASSERT_THAT(served.errors, Each(""));
  const auto expected = column<double>(metrics(local, "train"), "loss");
  const auto losses = column<double>(metrics(served, "train"), "loss");
  const auto others = column<double>(metrics(constant, "train"), "loss");
  ASSERT_THAT(losses, SizeIs(20));
  ASSERT_THAT(expected, SizeIs(20));
  for (std::size_t step = 0; step < 20; ++step) EXPECT_NEAR(losses[step], expected[step], 1e-5) << step;
  EXPECT_GT(std::abs(others[19] - expected[19]), 1e-4) << "the embeddings make a difference";
  EXPECT_NEAR(metric(served.results[0].test, "auc"), metric(local.results[0].test, "auc"), 1e-5);
}

TEST(ServedEmbeddings, AreSharedByTheRanks) {
  const auto one = run_embeddings(1, "{name: servers, rule: sgd, lr: 0.5, staleness: 0, scale: 0}");
  const auto two = run_embeddings(2, "{name: servers, rule: sgd, lr: 0.5, staleness: 0, scale: 0}");
  ASSERT_THAT(two.errors, Each(""));
  const auto expected = column<double>(metrics(one, "train"), "loss");
  const auto losses = column<double>(metrics(two, "train"), "loss");
  ASSERT_EQ(losses.size(), expected.size());
  for (std::size_t step = 0; step < losses.size(); ++step) EXPECT_NEAR(losses[step], expected[step], 1e-4) << step;
}

TEST(ServedEmbeddings, TheResultHasTheCountsOfTheCache) {
  const auto cached = run_embeddings(2, "{name: servers, staleness: 2, cache_staleness: 3, cache_rows: 100}");
  const auto pulled = run_embeddings(2, "{name: servers, staleness: 2, cache_staleness: 0}");
  ASSERT_THAT(cached.errors, Each(""));
  ASSERT_THAT(pulled.errors, Each(""));
  const auto& with = cached.results[0].metrics;
  const auto& without = pulled.results[0].metrics;
  EXPECT_GT(metric(with, "embedding_cache_hits"), 0);
  EXPECT_EQ(metric(without, "embedding_cache_hits"), 0);
  EXPECT_LT(metric(with, "embedding_rows_pulled"), metric(without, "embedding_rows_pulled"));
  EXPECT_LT(metric(with, "embedding_rows_pushed"), metric(without, "embedding_rows_pushed"));
}

// Returns the keys of all rows of a checkpoint, sorted, and the rows in this order with the state of their update rule.
std::pair<at::Tensor, at::Tensor> rows_in(const std::string& checkpoint, int ranks) {
  std::vector<at::Tensor> keys, rows;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto all = load_safetensors(checkpoint + "/" + state_file(rank, ranks));
    const std::map<std::string, at::Tensor> by_name(all.begin(), all.end());
    keys.push_back(by_name.at("part/embeddings/keys"));
    rows.push_back(by_name.at("part/embeddings/rows"));
  }
  const at::Tensor all = at::concat(keys), order = at::argsort(all);
  return {all.index_select(0, order), at::concat(rows).index_select(0, order)};
}

// Asks each rank to stop after `step` steps. `steps` counts the steps of each rank.
testing::Interference stop_after(std::int64_t step, std::vector<std::int64_t>& steps) {
  return {.stop_asked = [step, &steps](int rank) { return ++steps[static_cast<std::size_t>(rank)] == step; }};
}

TEST(ServedEmbeddings, AnInterruptedRunResumesBitForBit) {
  const std::string embeddings = "{name: servers, rule: adam, lr: 0.02, staleness: 0, cache_staleness: 0}";
  const Changes saving{"checkpoint.every_steps=20"};
  const auto whole = run_embeddings(1, embeddings, saving);
  const auto folder = new_folder();
  std::vector<std::int64_t> steps(1);
  const auto stopped = run_embeddings(1, embeddings, saving, folder, stop_after(6, steps));
  ASSERT_TRUE(stopped.results[0].stopped);
  const auto resumed = run_embeddings(1, embeddings, {"checkpoint.every_steps=20", "checkpoint.resume=auto"}, folder);
  ASSERT_THAT(resumed.errors, Each(""));
  EXPECT_THAT(resumed.began_after, Each(7));
  EXPECT_TRUE(at::equal(resumed.weights[0], whole.weights[0]));
  EXPECT_EQ(resumed.results[0].test, whole.results[0].test);
  EXPECT_EQ(testing::metrics_but_times(folder), testing::metrics_but_times(whole.folder));
  const auto [keys, rows] = rows_in(CheckpointFolder(folder.checkpoints()).final_path(20), 1);
  const auto [expected_keys, expected_rows] = rows_in(CheckpointFolder(whole.folder.checkpoints()).final_path(20), 1);
  EXPECT_GT(keys.numel(), 50);
  EXPECT_TRUE(at::equal(keys, expected_keys));
  EXPECT_TRUE(at::equal(rows, expected_rows)) << "including moments and step counts";
}

// Cached rows are written to the servers before a checkpoint reads them, and pulled again afterwards.
TEST(ServedEmbeddings, ARunWithCachesResumesAsTheFirstRunContinued) {
  const std::string embeddings =
      "{name: servers, rule: adagrad, lr: 0.1, staleness: 0, cache_staleness: 3, prefetch: true}";
  const auto whole = run_embeddings(1, embeddings, {"checkpoint.every_steps=7", "checkpoint.keep_last=9"});
  ASSERT_THAT(whole.errors, Each(""));
  const auto path = CheckpointFolder(whole.folder.checkpoints()).final_path(7);
  const auto resumed = run_embeddings(1, embeddings, {"checkpoint.every_steps=7", "checkpoint.resume=" + path});
  ASSERT_THAT(resumed.errors, Each(""));
  EXPECT_THAT(resumed.began_after, Each(7));
  EXPECT_TRUE(at::equal(resumed.weights[0], whole.weights[0]));
  EXPECT_EQ(resumed.results[0].test, whole.results[0].test);
}

// Each rank has a server, so there are as many servers as ranks. The rule's result must not depend on when gradients
// arrive.
TEST(ServedEmbeddings, ResumeOnAnotherNumberOfRanksAndServers) {
  const std::string embeddings = "{name: servers, rule: sgd, lr: 0.5, staleness: 0}";
  const auto whole = run_embeddings(1, embeddings);
  const auto expected = column<double>(metrics(whole, "train"), "loss");
  for (const auto& [before, after] : {std::pair(1, 2), std::pair(2, 1), std::pair(3, 2)}) {
    const auto folder = new_folder();
    std::vector<std::int64_t> steps(3);
    run_embeddings(before, embeddings, {}, folder, stop_after(6, steps));
    const auto resumed = run_embeddings(after, embeddings, {"checkpoint.resume=auto"}, folder);
    ASSERT_THAT(resumed.errors, Each(""));
    EXPECT_THAT(resumed.began_after, Each(7));
    const auto losses = column<double>(metrics(resumed, "train"), "loss");
    ASSERT_EQ(losses.size(), expected.size());
    for (std::size_t step = 0; step < losses.size(); ++step) EXPECT_NEAR(losses[step], expected[step], 1e-4) << step;
  }
}

TEST(ServedEmbeddings, ACheckpointOfOtherEmbeddingsIsRefused) {
  const auto saved = run_embeddings(1, "{name: servers, rule: adagrad}", {"checkpoint.every_steps=20"});
  const std::string resume = "checkpoint.resume=" + CheckpointFolder(saved.folder.checkpoints()).final_path(20);
  EXPECT_THAT(run_embeddings(1, "{name: servers, rule: adam}", {resume}).errors[0], HasSubstr("numbers per row"));
}

// With a cache but without prefetching, the rows of a step are at best the rows of the step before.
TEST(ServedEmbeddings, RowsAreRequestedWhileThePreviousStepComputes) {
  const auto ahead = run_embeddings(1, "{name: servers, rule: sgd, lr: 0.5, cache_staleness: 1, prefetch: true}");
  const auto late = run_embeddings(1, "{name: servers, rule: sgd, lr: 0.5, cache_staleness: 1}");
  ASSERT_THAT(ahead.errors, Each(""));
  const auto &with = ahead.results[0].metrics, &without = late.results[0].metrics;
  EXPECT_GT(metric(with, "embedding_cache_hits"), 2 * metric(without, "embedding_cache_hits"));
  EXPECT_GT(metric(with, "embedding_cache_hits"), 0.8 * metric(without, "embedding_rows_pulled"));
  EXPECT_LT(column<double>(metrics(ahead, "train"), "loss")[19], column<double>(metrics(ahead, "train"), "loss")[0]);
  EXPECT_THAT(run_embeddings(1, "{name: servers, cache_staleness: 0, prefetch: true}").errors[0],
              HasSubstr("prefetch"));
}

TEST(ServedEmbeddings, TheResultHasTheBytesSentAndTheRowsOfEachServer) {
  const auto two = run_embeddings(2, "{name: servers, staleness: 0}");
  ASSERT_THAT(two.errors, Each(""));
  const auto& metrics = two.results[0].metrics;
  // Each row travels as a key of 8 bytes and 4 numbers of 4 bytes, in both directions. Evaluation also pulls.
  EXPECT_GE(metric(metrics, "embedding_bytes_pulled"), 24 * metric(metrics, "embedding_rows_pulled"));
  EXPECT_EQ(metric(metrics, "embedding_bytes_pushed"), 24 * metric(metrics, "embedding_rows_pushed"));
  EXPECT_EQ(metric(metrics, "embedding_staleness_max"), 0);
  const double first = metric(metrics, "embedding_rows_on_server_0");
  const double second = metric(metrics, "embedding_rows_on_server_1");
  EXPECT_GT(first, 30);
  EXPECT_GT(second, 30);
  EXPECT_LE(first + second, 150) << "3 features of 50 keys";
}

// Most ids of the test samples do not occur in the training samples.
constexpr const char* kRareIds =
    "dataset={name: clicks, train_samples: 160, test_samples: 100, features: 3, keys: 5000, dense: 2}";

struct Measured {
  Metrics metrics;
  std::string error;  // text of the error that rank 0 threw; empty: no error
};

// Evaluates the weights in a folder on `ranks` ranks, without servers.
Measured measure(int ranks, const RunFolder& folder, const std::string& embeddings) {
  const auto config = testing::tiny_config(changes_of(embeddings, {kRareIds}));
  const auto splits = config.dataset.make();
  Measured measured;
  testing::run_ranks("inproc", ranks, [&](const CommunicatorPtr& world) {
    std::string error;
    Metrics metrics;
    try {
      metrics =
          evaluate_weights(config, {.world = world, .splits = splits, .folder = folder}, {.weights = folder.weights()})
              ->metrics;
    } catch (const DataError& thrown) {
      error = thrown.what();
    }
    if (world->rank() == 0) measured = {metrics, error};
  });
  return measured;
}

void expect_near(const Metrics& metrics, const Metrics& expected, const std::string& of) {
  ASSERT_EQ(metrics.size(), expected.size()) << of;
  for (const auto& [name, value] : expected) EXPECT_NEAR(metric(metrics, name), value, 1e-6) << name << " of " << of;
}

TEST(ServedEmbeddings, SavedRowsAreEvaluatedWithoutServersOnAnyNumberOfRanks) {
  for (const std::string how : {"rule: sgd, lr: 0.5", "partition: range, cache_staleness: 3", "capacity: 90"}) {
    const std::string embeddings = "{name: servers, scale: 1, " + how + "}";
    for (const int trained_on : {1, 2, 3}) {
      const auto trained = run_embeddings(trained_on, embeddings, {kRareIds});
      ASSERT_THAT(trained.errors, Each(""));
      for (const int ranks : {1, 2}) {
        expect_near(measure(ranks, trained.folder, embeddings).metrics, trained.results[0].test,
                    how + " on " + std::to_string(trained_on) + " ranks, measured on " + std::to_string(ranks));
      }
    }
  }
}

TEST(ServedEmbeddings, RowsThatTrainingNeverUsedHaveTheirInitialValuesInAnEvaluation) {
  const std::string embeddings = "{name: servers, scale: 3, seed: 1}";
  const auto trained = run_embeddings(1, embeddings, {kRareIds});
  const auto others = measure(1, trained.folder, "{name: servers, scale: 3, seed: 2}").metrics;
  EXPECT_GT(std::abs(metric(others, "loss") - metric(trained.results[0].test, "loss")), 1e-4)
      << "they follow from the seed";
}

TEST(ServedEmbeddings, AnEvaluationWithoutTheirRowsIsRefused) {
  const auto folder = run_embeddings(1, "servers", {kRareIds}).folder;
  const auto refused = [&](const std::string& why) {
    EXPECT_THAT(measure(1, folder, "servers").error, AllOf(StartsWith(folder.embeddings() + ": "), HasSubstr(why)));
  };
  std::filesystem::resize_file(folder.embeddings(), 1000);
  refused("data_offsets");
  std::filesystem::remove(folder.embeddings());
  refused("No such file or directory; the model has embeddings on parameter servers");
}

TEST(ServedEmbeddings, ARunThatSavesNoWeightsSavesNoRows) {
  const auto folder = run_embeddings(2, "servers", {"checkpoint.final_weights=false"}).folder;
  EXPECT_FALSE(std::filesystem::exists(folder.embeddings()));
  EXPECT_FALSE(std::filesystem::exists(run_embeddings(1, "local").folder.embeddings())) << "there are none on servers";
}

TEST(ServedEmbeddings, RefuseSettingsThatCannotBeCombinedWithThem) {
  for (const auto& [change, key] :
       std::vector<std::pair<std::string, std::string>>{{"strategy=local_sgd", "strategy: local_sgd"},
                                                        {"train.clip_norm=1", "train.clip_norm"},
                                                        {"train.ema_decay=0.9", "train.ema_decay"},
                                                        {"train.data_parallel=2", "train.data_parallel"}}) {
    EXPECT_THAT(run_embeddings(1, "servers", {change}).errors[0], HasSubstr(key)) << change;
  }
}

}  // namespace
}  // namespace phalanx
