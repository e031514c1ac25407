// Embeddings on parameter servers, in whole runs.
#include <gmock/gmock.h>

#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "engine/experiment/testing_run.h"

namespace phalanx {
namespace {

using testing::Changes;
using testing::column;
using ::testing::Each;
using testing::Finished;
using ::testing::HasSubstr;
using testing::metrics;
using testing::new_folder;
using testing::reading;
using testing::run_tiny;
using ::testing::SizeIs;

constexpr const char* kClicks =
    "dataset={name: clicks, train_samples: 160, test_samples: 20, features: 3, keys: 50, dense: 2}";

// 20 steps.
Finished run(int ranks, const std::string& embeddings, const Changes& changes = {}) {
  Changes all{kClicks,
              "model={name: dlrm, dim: 4, bottom: [8], top: [8], embeddings: " + embeddings + "}",
              "optimizer={name: sgd, lr: 0.5}",
              "schedule=constant",
              "train={global_batch_size: 16, epochs: 2}",
              "watch.every_steps=1",
              "expect={}"};
  all.insert(all.end(), changes.begin(), changes.end());
  return run_tiny(ranks, new_folder(), all);
}

// With scale 0 rows begin alike, and with staleness 0 and no cache each step reads what the one before has pushed.
TEST(ServedEmbeddings, AreTrainedAsThoseOfTheModelAre) {
  const auto local = run(1, "{name: local, scale: 0}");
  const auto served = run(1, "{name: servers, scale: 0, staleness: 0, cache_staleness: 0, rule: sgd, lr: 0.5}");
  const auto constant = run(1, "{name: servers, scale: 0, staleness: 0, cache_staleness: 0, rule: sgd, lr: 0.000001}");
  ASSERT_THAT(local.errors, Each(""));
  ASSERT_THAT(served.errors, Each(""));
  const auto expected = column<double>(metrics(local, "train"), "loss");
  const auto losses = column<double>(metrics(served, "train"), "loss");
  const auto others = column<double>(metrics(constant, "train"), "loss");
  ASSERT_THAT(losses, SizeIs(20));
  ASSERT_THAT(expected, SizeIs(20));
  for (std::size_t step = 0; step < 20; ++step) EXPECT_NEAR(losses[step], expected[step], 1e-5) << step;
  EXPECT_GT(std::abs(others[19] - expected[19]), 1e-4) << "the embeddings make a difference";
  EXPECT_NEAR(reading(served.results[0].test, "auc"), reading(local.results[0].test, "auc"), 1e-5);
}

TEST(ServedEmbeddings, RanksShareThem) {
  const auto one = run(1, "{name: servers, rule: sgd, lr: 0.5, staleness: 0, scale: 0}");
  const auto two = run(2, "{name: servers, rule: sgd, lr: 0.5, staleness: 0, scale: 0}");
  ASSERT_THAT(two.errors, Each(""));
  const auto expected = column<double>(metrics(one, "train"), "loss");
  const auto losses = column<double>(metrics(two, "train"), "loss");
  ASSERT_EQ(losses.size(), expected.size());
  for (std::size_t step = 0; step < losses.size(); ++step) EXPECT_NEAR(losses[step], expected[step], 1e-4) << step;
}

TEST(ServedEmbeddings, TheResultSaysWhatTheCacheDid) {
  const auto cached = run(2, "{name: servers, staleness: 2, cache_staleness: 3, cache_rows: 100}");
  const auto pulled = run(2, "{name: servers, staleness: 2, cache_staleness: 0}");
  ASSERT_THAT(cached.errors, Each(""));
  ASSERT_THAT(pulled.errors, Each(""));
  const auto& with = cached.results[0].figures;
  const auto& without = pulled.results[0].figures;
  EXPECT_GT(reading(with, "embedding_cache_hits"), 0);
  EXPECT_EQ(reading(without, "embedding_cache_hits"), 0);
  EXPECT_LT(reading(with, "embedding_rows_pulled"), reading(without, "embedding_rows_pulled"));
  EXPECT_LT(reading(with, "embedding_rows_pushed"), reading(without, "embedding_rows_pushed"));
}

TEST(ServedEmbeddings, RefuseWhatTheyCannotBeCombinedWith) {
  for (const auto& [change, key] :
       std::vector<std::pair<std::string, std::string>>{{"strategy=local_sgd", "strategy: local_sgd"},
                                                        {"train.clip_norm=1", "train.clip_norm"},
                                                        {"train.ema_decay=0.9", "train.ema_decay"},
                                                        {"train.data_parallel=2", "train.data_parallel"},
                                                        {"checkpoint.resume=auto", "checkpoint.resume"},
                                                        {"checkpoint.every_steps=5", "checkpoint.every_steps"}}) {
    EXPECT_THAT(run(1, "servers", {change}).errors[0], HasSubstr(key)) << change;
  }
}

}  // namespace
}  // namespace phalanx
