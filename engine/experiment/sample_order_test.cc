// loader.sampler, loader.last_batch and loader.on_error: which samples a run learns from.
#include <gmock/gmock.h>

#include <array>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "datasets/batch_memory.h"
#include "datasets/dataset.h"
#include "engine/experiment/testing_run.h"
#include "framework/base/config/no_fields.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

using testing::Changes;
using testing::complaint;
using ::testing::Contains;
using ::testing::Each;
using testing::final_weights;
using ::testing::HasSubstr;
using testing::new_folder;
using testing::relative_difference;
using testing::run_tiny;
using testing::summary;

// Points of two classes; samples 10 and 11 of those to train on cannot be read.
class Torn final : public Dataset {
 public:
  explicit Torn(bool torn) : torn_(torn) {}
  std::int64_t size() const override { return 40; }
  const SampleSpec& spec() const override { return spec_; }
  void gather(std::span<const std::int64_t> indices, std::uint64_t, Batch& batch) const override {
    const auto rows = std::ssize(indices);
    auto* point = ensure(batch.inputs, 0, std::array{rows, std::int64_t{2}}, at::kFloat).data_ptr<float>();
    auto* target = ensure(batch.targets, 0, std::array{rows}, at::kLong).data_ptr<std::int64_t>();
    for (const auto index : indices) {
      if (torn_ && (index == 10 || index == 11))
        throw DataError("points.bin: byte " + std::to_string(index) + ": torn");
      *point++ = static_cast<float>(index % 2);
      *point++ = static_cast<float>(index) / 40;
      *target++ = index % 2;
    }
  }

 private:
  SampleSpec spec_ = classification_samples({2}, 2);
  bool torn_;
};

const bool registered = Datasets::global().add<NoFields>("torn", "made for tests", [](const NoFields&) {
  return Splits{.train = std::make_shared<Torn>(true), .test = std::make_shared<Torn>(false)};
});

TEST(Sampler, LearnsTheSameOnAnyNumberOfRanks) {
  for (const std::string sampler : {"weighted", "stratified", "infinite", "{name: streaming, block: 8, window: 24}"}) {
    const Changes changes{"dataset=torn", "model=mlp", "loader.sampler=" + sampler, "loader.on_error=skip",
                          "loader.last_batch=pad"};
    const auto one = run_tiny(1, new_folder(), changes), three = run_tiny(3, new_folder(), changes);
    ASSERT_THAT(one.errors, Each("")) << sampler;
    ASSERT_THAT(three.errors, Each("")) << sampler;
    EXPECT_LT(relative_difference(final_weights(three), final_weights(one)), 1e-5) << sampler;
    EXPECT_EQ(summary(one).at("loader").at("replaced"), summary(three).at("loader").at("replaced")) << sampler;
  }
}

TEST(LastBatchOfARun, DecidesOnTheStepsOfAnEpoch) {
  // 40 samples by 32, three epochs.
  for (const auto& [last, steps] : {std::pair("smaller", 6), {"pad", 6}, {"drop", 3}}) {
    const auto run =
        run_tiny(1, new_folder(),
                 {"dataset=torn", "model=mlp", "loader.on_error=skip", std::string("loader.last_batch=") + last});
    ASSERT_THAT(run.errors, Each(""));
    EXPECT_EQ(run.results[0].steps, steps) << last;
  }
  EXPECT_THAT(
      run_tiny(1, new_folder(), {"dataset=torn", "model=mlp", "train.global_batch_size=64", "loader.last_batch=drop"})
          .errors,
      Contains(HasSubstr("loader.last_batch: drop leaves nothing of an epoch of 40 samples")));
}

TEST(OnError, EndsTheRunWithFileAndOffsetOrCountsWhatItSkips) {
  EXPECT_THAT(run_tiny(1, new_folder(), {"dataset=torn", "model=mlp"}).errors,
              Contains(HasSubstr("points.bin: byte 1")));
  const auto run = run_tiny(1, new_folder(), {"dataset=torn", "model=mlp", "loader.on_error=skip"});
  ASSERT_THAT(run.errors, Each(""));
  EXPECT_EQ(summary(run).at("loader").at("unreadable"), 2);
  EXPECT_EQ(summary(run).at("loader").at("replaced"), 3 * 2) << "in three epochs";
  EXPECT_THAT(
      run_tiny(1, new_folder(), {"dataset=torn", "model=mlp", "loader.on_error=skip", "loader.max_errors=1"}).errors,
      Contains(HasSubstr("loader.max_errors allows 1")));
}

// Targets are shares of classes in training, and class numbers in tests.
TEST(MixedSamples, AreLearntFromOnAnyNumberOfRanks) {
  const Changes changes{"dataset={name: mixup, of: {name: spirals, train_samples: 100, test_samples: 26}}", "model=mlp",
                        "loss={name: cross_entropy, label_smoothing: 0.1}", "train.epochs=6",
                        "watch.meters=[{meter: accuracy}, {meter: loss}]"};
  const auto one = run_tiny(1, new_folder(), changes), three = run_tiny(3, new_folder(), changes);
  ASSERT_THAT(one.errors, Each(""));
  ASSERT_THAT(three.errors, Each(""));
  EXPECT_LT(relative_difference(final_weights(three), final_weights(one)), 1e-5);
  EXPECT_GT(summary(one).at("test").at("accuracy"), 0.4);
  EXPECT_GT(summary(one).at("train").at("accuracy"), 0.3);
}

TEST(Sampler, IsCheckedBeforeARun) {
  EXPECT_EQ(complaint("loader: {sampler: stratified}"), "");
  EXPECT_THAT(complaint("loader: {sampler: stratified, shuffle: false}"), HasSubstr("loader.shuffle: is what sampler"));
  EXPECT_THAT(complaint("loader: {prefetch_bytes: much}"), HasSubstr("loader.prefetch_bytes"));
}

}  // namespace
}  // namespace phalanx
