// SPDX-License-Identifier: Apache-2.0
// For every registered meter, ranks with uneven shares of all samples, one of them with only padding, must have the
// same metrics, bit for bit, as one rank with all samples.
#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/concat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <gmock/gmock.h>

#include <array>
#include <cmath>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "engine/testing/meter.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

constexpr std::int64_t kBatches = 5, kRows = 8, kMergedSamples = kBatches * kRows;
constexpr std::array<std::int64_t, 4> kShares = {4, 2, 0, 2};  // rows in each batch, by rank

// A model's outputs for the samples, and the targets.
struct Samples {
  at::Tensor output, target, losses{};
};

Samples classes() {
  return {.output = (at::rand({kMergedSamples, 4}) * 5).floor(), .target = at::randint(4, {kMergedSamples}, at::kLong)};
}
Samples tokens() {
  return {.output = at::rand({kMergedSamples, 3, 4}), .target = at::randint(4, {kMergedSamples, 3}, at::kLong)};
}
Samples labels() {
  return {.output = (at::rand({kMergedSamples, 4}) * 9 - 4).floor(),
          .target = at::rand({kMergedSamples, 4}).lt(0.4).to(at::kLong)};
}
Samples graded() {
  return {.output = at::rand({kMergedSamples, 7}), .target = (at::rand({kMergedSamples, 7}) * 4).floor()};
}
Samples scores() {
  return {.output = at::rand({kMergedSamples}), .target = at::rand({kMergedSamples}).lt(0.5).to(at::kLong)};
}
Samples values() { return {.output = at::rand({kMergedSamples, 2}) * 1e3, .target = at::rand({kMergedSamples, 2})}; }

struct Case {
  const char* meter;
  Samples (*samples)();
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.meter; }

const std::vector<Case> kCases = {
    {"loss", values},
    {"perplexity", values},
    {"accuracy", classes},
    {"accuracy", tokens},
    {"class_error", classes},
    {"{name: class_error, k: 2}", tokens},
    {"mse", values},
    {"{name: mse, root: true}", values},
    {"average", values},
    {"{name: average, of: target}", values},
    {"{name: moving_average, window: 3}", values},
    {"{name: moving_average, window: 100}", values},
    {"confusion", classes},
    {"{name: confusion, normalized: true}", tokens},
    {"multi_label_confusion", labels},
    {"precision", labels},
    {"{name: precision, average: micro}", classes},
    {"recall", labels},
    {"{name: recall, average: none}", classes},
    {"{name: ndcg, k: 4}", graded},
    {"{name: ndcg, k: 3, discount: log2(i)}", graded},
    {"{name: precision_at_k, k: 3}", graded},
    {"average_precision", labels},
    {"average_precision", classes},
    {"mean_average_precision", labels},
    {"auc", scores},
    {"auc", classes},
    {"verification", tokens},
    {"retrieval", tokens},
    {"{name: retrieval, k: 3}", classes},
};

// Adds rows [begin, begin + rows) of the samples, followed by two rows that must not count, whose scores and labels are
// 1.
void add(Meter& meter, const Samples& samples, std::int64_t begin, std::int64_t rows) {
  const auto padded = [&](const at::Tensor& all) {
    const at::Tensor two = at::full_like(all.narrow(0, 0, 2), 1);
    return at::concat({all.narrow(0, begin, rows), two});
  };
  const Batch batch{.targets = {padded(samples.target)}, .valid = rows, .global_rows = kRows};
  // Multiples of 1/8, whose mean over 2, 4 or 8 is exact, as the sums are.
  const at::Tensor loss = rows > 0 ? samples.losses.narrow(0, begin, rows).mean() : at::full({}, NAN);
  meter.add(batch, {.outputs = {padded(samples.output)}, .loss = loss, .weight = static_cast<double>(rows)});
}

Metrics alone(const Case& c, const Samples& samples) {
  Metrics metrics;
  testing::run_ranks("inproc", 1, [&](const CommunicatorPtr& group) {
    const auto meter = testing::make_meter(c.meter);
    for (std::int64_t batch = 0; batch < kBatches; ++batch) add(*meter, samples, batch * kRows, kRows);
    metrics = meter->take(*group);
  });
  return metrics;
}

class Merge : public ::testing::TestWithParam<Case> {
 protected:
  Merge()
      : samples_([] {
          at::manual_seed(11);
          Samples samples = GetParam().samples();
          samples.losses = at::randint(64, {kMergedSamples}, at::kDouble) / 8;
          return samples;
        }()) {}

  Samples samples_;
};

TEST_P(Merge, UnevenSharesReadWhatOneRankReads) {
  const auto expected = alone(GetParam(), samples_);
  ASSERT_FALSE(expected.empty());
  testing::run_ranks("inproc", 4, [&](const CommunicatorPtr& group) {
    const auto rank = static_cast<std::size_t>(group->rank());
    const auto meter = testing::make_meter(GetParam().meter);
    for (int round = 0; round < 2; ++round) {  // the second round starts again
      for (std::int64_t batch = 0; batch < kBatches; ++batch) {
        std::int64_t begin = batch * kRows;
        for (std::size_t before = 0; before < rank; ++before) begin += kShares[before];
        add(*meter, samples_, begin, kShares[rank]);
      }
      const auto metrics = meter->take(*group);
      if (round == 0 || std::string(GetParam().meter).find("window: 100") == std::string::npos) {
        EXPECT_EQ(metrics, expected) << "round " << round;
      }
    }
  });
}

TEST_P(Merge, OneRankMayHaveEverything) {
  const auto expected = alone(GetParam(), samples_);
  testing::run_ranks("inproc", 4, [&](const CommunicatorPtr& group) {
    const auto meter = testing::make_meter(GetParam().meter);
    for (std::int64_t batch = 0; batch < kBatches; ++batch) {
      add(*meter, samples_, batch * kRows, group->rank() == 2 ? kRows : 0);
    }
    EXPECT_EQ(meter->take(*group), expected);
  });
}

TEST_P(Merge, BatchesOfOneRankCountOnceIfOthersSkipThem) {
  const auto expected = alone(GetParam(), samples_);
  testing::run_ranks("inproc", 3, [&](const CommunicatorPtr& group) {
    const auto meter = testing::make_meter(GetParam().meter);
    for (std::int64_t batch = 0; batch < kBatches; ++batch) {
      group->rank() == 1 ? add(*meter, samples_, batch * kRows, kRows) : meter->skip_batch();
    }
    EXPECT_EQ(meter->take(*group), expected);
  });
}

TEST_P(Merge, NothingAddedReadsZeroOrNothing) {
  testing::run_ranks("inproc", 2, [&](const CommunicatorPtr& group) {
    for (const auto& [name, value] : testing::make_meter(GetParam().meter)->take(*group)) EXPECT_EQ(value, 0) << name;
  });
}

INSTANTIATE_TEST_SUITE_P(Meters, Merge, ::testing::ValuesIn(kCases));

TEST(MergeCases, HaveEveryMeter) {
  std::set<std::string> missing;
  for (const auto& name : Meters::global().names()) missing.insert(name);
  missing.erase("time");  // does not depend on samples; see means_test.cc
  for (const auto& c : kCases) missing.erase(config::load_as<Meters::Choice>("meter", c.meter, "test.yaml").selected());
  EXPECT_THAT(missing, ::testing::IsEmpty());
}

}  // namespace
}  // namespace phalanx
