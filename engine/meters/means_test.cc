#include "engine/meters/meters.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/one_hot.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "datasets/sampler.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

constexpr std::int64_t kSamples = 11, kClasses = 4;

// Sample i is of class i % 4, is guessed right unless 3 divides i, and has a loss of i.
at::Tensor targets_of(const at::Tensor& samples) { return samples % kClasses; }
at::Tensor logits_of(const at::Tensor& samples) {
  const at::Tensor wrong = samples.remainder(3).eq(0).to(at::kLong);
  return at::one_hot((targets_of(samples) + wrong) % kClasses, kClasses).to(at::kFloat);
}

// The batch and result of some samples followed by padding that is guessed right, so that counting it would show.
void add_rows(Meters& meters, const at::Tensor& samples, std::int64_t padding, std::int64_t global_rows) {
  const at::Tensor all = at::cat({samples, at::full({padding}, 1, at::kLong)});
  const auto valid = samples.numel();
  const double loss =
      valid == 0 ? std::numeric_limits<double>::quiet_NaN() : samples.to(at::kDouble).mean().item<double>();
  meters.add({.input = all, .target = targets_of(all), .valid = valid, .global_rows = global_rows},
             {.output = logits_of(all), .loss = at::full({}, loss, at::kDouble)});
}

void add_loss(Meters& meters, std::int64_t rows, double loss) {
  Batch batch;
  batch.valid = rows;
  meters.add(batch, {.loss = at::full({}, loss, at::kDouble)});
}

class MetersAcrossRanks : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, MetersAcrossRanks, ::testing::Range(1, 5));

TEST_P(MetersAcrossRanks, Q22_S8_MeansAreExactWithUnevenAndEmptyShares) {
  testing::run_ranks("inproc", GetParam(), [](const CommunicatorPtr& group) {
    // 11 samples by 3: the last batch has 2, so with 3 and 4 ranks some shares are padding alone.
    DistributedSampler sampler(
        {.samples = kSamples, .global_batch = 3, .seed = 5, .rank = group->rank(), .size = group->size()});
    Meters meters({loss_meter(), accuracy_meter()});
    for (std::int64_t cursor = 0; cursor < sampler.batches(); ++cursor) {
      const auto share = sampler.share(0, cursor);
      const std::vector<std::int64_t> samples(share.indices.begin(), share.indices.begin() + share.valid);
      const auto padding = static_cast<std::int64_t>(share.indices.size()) - share.valid;
      add_rows(meters, at::tensor(samples, at::kLong), padding, share.global_rows);
    }
    EXPECT_THAT(meters.take(*group), ElementsAre(Pair("loss", 5.0), Pair("accuracy", 7.0 / 11)));
  });
}

TEST_P(MetersAcrossRanks, Q22_RanksWithMoreSamplesCountMore) {
  testing::run_ranks("inproc", GetParam(), [](const CommunicatorPtr& group) {
    // Rank r has r + 1 samples of loss r: a mean of the ranks' means would be another number.
    const auto rows = group->rank() + 1;
    Meters meters({loss_meter()});
    add_loss(meters, rows, group->rank());
    double sum = 0, weight = 0;
    for (int rank = 0; rank < group->size(); ++rank) sum += rank * (rank + 1), weight += rank + 1;
    EXPECT_THAT(meters.take(*group), ElementsAre(Pair("loss", sum / weight)));
  });
}

void alone(const testing::RankBody& body) { testing::run_ranks("inproc", 1, body); }

TEST(Meters, S8_PaddingDoesNotCount) {
  alone([](const CommunicatorPtr& group) {
    Meters meters({loss_meter(), accuracy_meter()});
    add_rows(meters, at::arange(0, 4, at::kLong), 5, 4);
    EXPECT_THAT(meters.take(*group), ElementsAre(Pair("loss", 1.5), Pair("accuracy", 0.5)));
  });
}

TEST(Meters, S8_ABatchOfPaddingAloneCountsNothing) {
  alone([](const CommunicatorPtr& group) {
    Meters meters({loss_meter(), accuracy_meter()});
    add_rows(meters, at::arange(1, 3, at::kLong), 0, 2);
    add_rows(meters, at::arange(0, 0, at::kLong), 1, 2);
    EXPECT_THAT(meters.take(*group), ElementsAre(Pair("loss", 1.5), Pair("accuracy", 1.0)));
  });
}

TEST(Meters, TakingStartsANewMean) {
  alone([](const CommunicatorPtr& group) {
    Meters meters({loss_meter()});
    add_loss(meters, 2, 8.0);
    EXPECT_THAT(meters.take(*group), ElementsAre(Pair("loss", 8.0)));
    add_loss(meters, 1, 3.0);
    EXPECT_THAT(meters.take(*group), ElementsAre(Pair("loss", 3.0)));
  });
}

TEST(Meters, NothingAddedReadsZero) {
  alone([](const CommunicatorPtr& group) {
    Meters meters({loss_meter(), accuracy_meter()});
    EXPECT_THAT(meters.take(*group), ElementsAre(Pair("loss", 0.0), Pair("accuracy", 0.0)));
  });
}

// A diverged run must not look like a good one.
TEST(Meters, ALossThatIsNotANumberStaysOne) {
  alone([](const CommunicatorPtr& group) {
    Meters meters({loss_meter()});
    add_loss(meters, 1, 1.0);
    add_loss(meters, 1, std::numeric_limits<double>::quiet_NaN());
    EXPECT_TRUE(std::isnan(meters.take(*group)[0].second));
  });
}

TEST(Meters, ReadingsAreInTheOrderOfTheMeters) {
  alone([](const CommunicatorPtr& group) {
    Meters meters({accuracy_meter(), {"rows", [](const Batch& b, const Step::Result&) {
                                        return Tally{1.0 * b.valid, 1};
                                      }}});
    add_rows(meters, at::arange(1, 3, at::kLong), 0, 2);
    EXPECT_THAT(meters.take(*group), ElementsAre(Pair("accuracy", 1.0), Pair("rows", 2.0)));
  });
}

}  // namespace
}  // namespace phalanx
