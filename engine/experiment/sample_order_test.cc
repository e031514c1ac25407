// SPDX-License-Identifier: Apache-2.0
// Tests which samples a run learns from (loader.sampler, last_batch, on_error), and values that are not finite.
#include <gmock/gmock.h>

#include <array>
#include <cmath>
#include <exception>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "datasets/batch_memory.h"
#include "datasets/dataset.h"
#include "engine/experiment/evaluate.h"
#include "engine/testing/run.h"
#include "framework/base/config/no_fields.h"
#include "framework/base/error.h"
#include "framework/testing/worlds.h"

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

// Points of two classes. Samples 10 and 11 of the training split cannot be read.
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

const bool sample_order_test_registered =
    Datasets::global().add<NoFields>("torn", "made for tests", [](const NoFields&) {
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

TEST(LastBatchOfARun, DeterminesTheStepsOfAnEpoch) {
  // 40 samples in batches of 32, three epochs.
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
  ::testing::internal::CaptureStderr();
  const auto run = run_tiny(1, new_folder(), {"dataset=torn", "model=mlp", "loader.on_error=skip"});
  EXPECT_THAT(
      ::testing::internal::GetCapturedStderr(),
      HasSubstr(
          "2 samples could not be read and were skipped; others took their place in 6 rows of batches. The first: "
          "points.bin: byte 1"));
  ASSERT_THAT(run.errors, Each(""));
  EXPECT_EQ(summary(run).at("loader").at("unreadable"), 2);
  EXPECT_EQ(summary(run).at("loader").at("replaced"), 3 * 2) << "in three epochs";
  EXPECT_THAT(
      run_tiny(1, new_folder(), {"dataset=torn", "model=mlp", "loader.on_error=skip", "loader.max_errors=1"}).errors,
      Contains(HasSubstr("loader.max_errors allows 1")));
}

TEST(OnError, AppliesToAnEvaluationToo) {
  const auto trained = run_tiny(1, new_folder(), {"dataset=torn", "model=mlp", "loader.on_error=skip"});
  ASSERT_THAT(trained.errors, Each(""));
  std::vector<std::string> errors(2);
  const auto evaluate = [&](const std::string& on_error) {
    const auto config = testing::tiny_config({"dataset=torn", "model=mlp", "loader.on_error=" + on_error});
    EvaluationResult result;
    testing::run_ranks("inproc", 2, [&](const CommunicatorPtr& world) {
      const auto torn = std::make_shared<Torn>(true);
      try {
        const auto measured = evaluate_weights(
            config, {.world = world, .splits = {.train = torn, .test = torn}, .folder = trained.folder},
            {.weights = trained.folder.weights()});
        if (world->rank() == 0) result = measured.value();
      } catch (const std::exception& error) {
        errors[static_cast<std::size_t>(world->rank())] = error.what();
      }
    });
    return result;
  };
  evaluate("fail");
  EXPECT_THAT(errors, Contains(HasSubstr("points.bin: byte 1")));
  errors.assign(2, "");
  const auto result = evaluate("skip");
  EXPECT_THAT(errors, Each(""));
  ASSERT_TRUE(result.unreadable);
  EXPECT_EQ(result.unreadable->replaced, 2);
  EXPECT_THAT(result.unreadable->first, HasSubstr("points.bin: byte 1"));
}

// A dataset with one sample of NaN, like the output of a broken sensor.
class NotFinite final : public Dataset {
 public:
  std::int64_t size() const override { return points_.size(); }
  const SampleSpec& spec() const override { return points_.spec(); }
  void gather(std::span<const std::int64_t> indices, std::uint64_t seed, Batch& batch) const override {
    points_.gather(indices, seed, batch);
    for (std::size_t row = 0; row < indices.size(); ++row) {
      if (indices[row] == 7) batch.inputs[0][static_cast<std::int64_t>(row)].fill_(NAN);
    }
  }

 private:
  Torn points_{false};
};

const bool not_finite_registered = Datasets::global().add<NoFields>("nan_test", "made for tests", [](const NoFields&) {
  return Splits{.train = std::make_shared<Torn>(false), .test = std::make_shared<NotFinite>()};
});

TEST(EvaluationThatIsNotFinite, EndsTheRunOnAllRanksUnlessTheGuardIsOff) {
  const auto guarded = run_tiny(2, new_folder(), {"dataset=nan_test", "model=mlp", "evaluate.every_epochs=0"});
  EXPECT_THAT(guarded.errors, Each(HasSubstr("the loss of the test split is not finite")));
  EXPECT_TRUE(std::filesystem::exists(guarded.folder.weights())) << "the trained weights are kept";
  EXPECT_THAT(run_tiny(2, new_folder(), {"dataset=nan_test", "model=mlp"}).errors,
              Each(HasSubstr("the loss of the test split is not finite")));
  ::testing::internal::CaptureStderr();
  const auto run = run_tiny(2, new_folder(), {"dataset=nan_test", "model=mlp", "watch.nan_guard={every_steps: 0}"});
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("Warning: the loss of the test split is nan"));
  EXPECT_THAT(run.errors, Each(""));
}

TEST(FullDisk, DoesNotEndARunThatOnlyWritesMeasurements) {
  const auto folder = new_folder();
  std::filesystem::create_symlink("/dev/full", folder.metrics());
  std::filesystem::create_symlink("/dev/full/none", folder.tensorboard());
  ::testing::internal::CaptureStderr();
  const auto run = run_tiny(1, folder,
                            {"model=mlp", "watch.tensorboard=true", "watch.report=false", "watch.every_steps=1",
                             "evaluate.every_epochs=0", "checkpoint.retry=1"});
  const std::string message = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(run.errors, Each(""));
  const std::string once =
      "Warning: " + folder.metrics() + ": cannot be written: No space left on device; the run continues";
  ASSERT_THAT(message, HasSubstr(once));
  EXPECT_EQ(message.find(once), message.rfind(once)) << message;
  EXPECT_TRUE(std::filesystem::exists(folder.weights()));
}

// Targets are shares of classes in training, and class numbers in tests.
TEST(MixedSamples, GiveTheSameResultOnAnyNumberOfRanks) {
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
  EXPECT_THAT(complaint("loader: {sampler: stratified, shuffle: false}"),
              HasSubstr("loader.shuffle: is only for sampler"));
  EXPECT_THAT(complaint("loader: {prefetch_bytes: much}"), HasSubstr("loader.prefetch_bytes"));
}

}  // namespace
}  // namespace phalanx
