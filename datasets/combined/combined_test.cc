// SPDX-License-Identifier: Apache-2.0
// Tests concat, repeat, mix, subset, split and resample. The base dataset's sample i is the number `first` + i of class
// i % 4; with `chance`, the seed passed to gather() is added to the number.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "datasets/batch_memory.h"
#include "datasets/dataset.h"
#include "datasets/testing/splits.h"
#include "framework/base/config/config.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using Indices = std::vector<std::int64_t>;

struct NumbersConfig {
  std::int64_t first = 0, samples = 10, width = 1;
  bool chance = false;

  template <class V>
  void visit(V& v) {
    v("first", first, "number of sample 0");
    v("samples", samples, "to train on", config::at_least(1));
    v("width", width, "of a sample");
    v("chance", chance, "add the seed");
  }
};

class Numbers final : public Dataset {
 public:
  explicit Numbers(const NumbersConfig& config) : config_(config) {}
  std::int64_t size() const override { return config_.samples; }
  const SampleSpec& spec() const override { return spec_; }
  std::int64_t label(std::int64_t index) const override { return index % 4; }
  void gather(std::span<const std::int64_t> indices, std::uint64_t seed, Batch& batch) const override {
    const auto rows = std::ssize(indices);
    auto* input = ensure(batch.inputs, 0, std::array{rows, config_.width}, at::kFloat).data_ptr<float>();
    auto* target = ensure(batch.targets, 0, std::array{rows}, at::kLong).data_ptr<std::int64_t>();
    for (const auto index : indices) {
      const auto chance = config_.chance ? static_cast<float>(seed % 1000) / 1000 : 0.0F;
      for (std::int64_t i = 0; i < config_.width; ++i) *input++ = static_cast<float>(config_.first + index) + chance;
      *target++ = index % 4;
    }
  }
  std::shared_ptr<const Dataset> unchanged() const override {
    auto config = config_;
    config.chance = false;
    return config_.chance ? std::make_shared<Numbers>(config) : nullptr;
  }

 private:
  NumbersConfig config_;
  SampleSpec spec_ = classification_samples({config_.width}, 4);
};

const bool combined_test_registered =
    Datasets::global().add<NumbersConfig>("numbers", "made for tests", [](const auto& config) {
      auto tested = config;
      tested.first = 1000 + config.first;
      tested.samples = 2;
      return Splits{.train = std::make_shared<Numbers>(config), .test = std::make_shared<Numbers>(tested)};
    });

std::vector<double> read(const Dataset& dataset, const Indices& indices, std::uint64_t seed = 0) {
  Batch batch;
  dataset.gather(indices, seed, batch);
  const auto* values = batch.inputs.at(0).const_data_ptr<float>();
  return {values, values + indices.size()};
}

std::vector<double> all_of(const Dataset& dataset, std::uint64_t seed = 0) {
  Indices all(static_cast<std::size_t>(dataset.size()));
  std::iota(all.begin(), all.end(), 0);
  return read(dataset, all, seed);
}

const std::string kThree = "{name: numbers, samples: 3}", kTwo = "{name: numbers, samples: 2, first: 100}";

TEST(Concat, HasTheDatasetsOneAfterTheOther) {
  const auto splits = testing::load_splits("{name: concat, of: [" + kThree + ", " + kTwo + "]}");
  EXPECT_THAT(all_of(*splits.train), ElementsAre(0, 1, 2, 100, 101));
  EXPECT_THAT(read(*splits.train, {4, 0, 3, 4}), ElementsAre(101, 0, 100, 101)) << "in any order";
  EXPECT_THAT(all_of(*splits.test), ElementsAre(1000, 1001, 1100, 1101));
  EXPECT_EQ(splits.train->label(4), 1);
  EXPECT_EQ(splits.validation, nullptr);
  EXPECT_FALSE(splits.train->samples_overlap());
}

TEST(Concat, Nests) {
  const auto splits =
      testing::load_splits("{name: concat, of: [" + kTwo + ", {name: repeat, times: 2, of: " + kTwo + "}]}");
  EXPECT_THAT(all_of(*splits.train), ElementsAre(100, 101, 100, 101, 100, 101));
  EXPECT_TRUE(splits.train->samples_overlap());
}

TEST(Concat, KeepsNothingOfAnotherBatch) {
  const auto splits = testing::load_splits("{name: concat, of: [" + kThree + ", " + kTwo + "]}");
  Batch batch;
  splits.train->gather(Indices{0, 3}, 0, batch);
  const auto kept = batch.inputs[0];
  splits.train->gather(Indices{4, 1}, 0, batch);
  EXPECT_EQ(kept.const_data_ptr<float>()[0], 0) << "it is still in use";
  EXPECT_EQ(batch.inputs[0].const_data_ptr<float>()[0], 101);
}

TEST(Repeat, DrawsNewChangesForEachRepetition) {
  const auto splits = testing::load_splits("{name: repeat, times: 3, of: {name: numbers, samples: 4, chance: true}}");
  const auto all = all_of(*splits.train, 7);
  ASSERT_EQ(all.size(), 12u);
  EXPECT_NE(all[1], all[5]);
  EXPECT_NE(all[5], all[9]);
  EXPECT_EQ(read(*splits.train, {5}, 7).at(0), all[5]) << "whatever else is in the batch";
  EXPECT_THAT(all_of(*splits.train->unchanged()), ElementsAre(0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3));
  EXPECT_EQ(splits.test->size(), 2) << "once";
}

TEST(Mix, DrawsInProportionAndDifferentlyForEachSeed) {
  const auto splits = testing::load_splits(
      "{name: mix, samples: 8000, of: [{name: numbers, samples: 5, weight: 1},"
      " {name: numbers, samples: 5, first: 100, weight: 3}]}");
  ASSERT_EQ(splits.train->size(), 8000);
  const auto one = all_of(*splits.train, 1), two = all_of(*splits.train, 2);
  EXPECT_NE(one, two);
  std::map<double, int> counts;
  for (const auto value : one) ++counts[value];
  ASSERT_EQ(counts.size(), 10u);
  for (const auto& [value, count] : counts) EXPECT_NEAR(count, value < 100 ? 400 : 1200, 150);
  EXPECT_EQ(read(*splits.train, {17}, 1).at(0), one[17]);
  EXPECT_EQ(splits.test->size(), 4);
  EXPECT_TRUE(splits.train->samples_overlap());
}

// Samples vary with the seed if the numbers are changed or the samples are drawn.
TEST(Combined, SaysWhetherItsSamplesVary) {
  const std::string plain = "{name: numbers}", changed = "{name: numbers, chance: true}",
                    drawn = "{name: mix, of: [" + plain + "]}";
  const auto varies = [](const std::string& yaml) { return testing::load_splits(yaml).train->varies(); };
  EXPECT_FALSE(varies("{name: concat, of: [" + plain + ", " + plain + "]}"));
  EXPECT_TRUE(varies("{name: concat, of: [" + plain + ", " + changed + "]}"));
  EXPECT_TRUE(varies(drawn));
  EXPECT_TRUE(varies("{name: concat, of: [" + plain + ", " + drawn + "]}"));
  EXPECT_TRUE(varies("{name: subset, train_samples: 3, of: " + drawn + "}"));
  EXPECT_FALSE(varies("{name: subset, train_samples: 3, of: " + plain + "}"));
  EXPECT_TRUE(
      testing::load_splits("{name: concat, of: [" + changed + ", " + drawn + "]}").train->unchanged()->varies());
}

TEST(Subset, TakesSomeSamplesOnce) {
  const auto splits = testing::load_splits("{name: subset, train_samples: 6, test_samples: 1, of: {name: numbers}}");
  const auto all = all_of(*splits.train);
  EXPECT_EQ(std::set<double>(all.begin(), all.end()).size(), 6u);
  EXPECT_TRUE(std::ranges::is_sorted(all));
  EXPECT_EQ(splits.test->size(), 1);
  EXPECT_NE(all, all_of(*testing::load_splits("{name: subset, seed: 2, train_samples: 6, of: {name: numbers}}").train));
}

TEST(Split, DividesTrainingSamples) {
  const auto splits =
      testing::load_splits("{name: split, test: 0.2, validation: 0.3, of: {name: numbers, chance: true}}");
  auto together = all_of(*splits.test, 5);
  EXPECT_EQ(together.size(), 2u);
  for (const auto value : all_of(*splits.validation, 5)) together.push_back(value);
  EXPECT_EQ(together.size(), 5u);
  for (const auto value : together) EXPECT_EQ(value, std::floor(value)) << "test samples are not changed at random";
  for (const auto value : all_of(*splits.train->unchanged())) together.push_back(value);
  std::ranges::sort(together);
  EXPECT_THAT(together, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
}

TEST(Resample, DrawsWithReplacementAndClassesEquallyOften) {
  const auto plain = testing::load_splits("{name: resample, samples: 4000, of: {name: numbers, samples: 5}}");
  std::map<double, int> counts;
  for (const auto value : all_of(*plain.train)) ++counts[value];
  for (const auto& [value, count] : counts) EXPECT_NEAR(count, 800, 130) << value;
  const auto balanced =
      testing::load_splits("{name: resample, balanced: true, samples: 4000, of: {name: numbers, samples: 5}}");
  counts.clear();
  for (const auto value : all_of(*balanced.train)) ++counts[value];
  for (const auto& [value, count] : counts) EXPECT_NEAR(count, value == 0 || value == 4 ? 500 : 1000, 130) << value;
  EXPECT_TRUE(plain.train->samples_overlap());
}

TEST(Combined, RefusesDatasetsThatDoNotFitTogether) {
  const auto refused = [](const std::string& yaml, const std::string& why) {
    EXPECT_THAT([&] { testing::load_splits(yaml); }, ThrowsMessage<ConfigError>(HasSubstr(why))) << yaml;
  };
  refused("{name: concat, of: [" + kTwo + ", {name: numbers, width: 2}]}",
          "dataset.of[1]: its samples have other shapes");
  refused("{name: concat, of: [" + kTwo + ", random_tokens]}", "expected a section");
  refused("{name: concat, of: [" + kTwo + ", {name: random_tokens}]}", "dataset.of[1]");
  refused("{name: concat}", "dataset.of: is empty");
  refused("{name: concat, of: [{samples: 2}]}", "samples: unknown key");
  refused("{name: concat, of: [{name: nmbers}]}", "numbers");
  refused("{name: concat, of: [{name: numbers, smples: 2}]}", "samples");
  refused("{name: repeat}", "dataset.of: a dataset is missing");
  refused("{name: mix, of: [{name: numbers, weight: 0}]}", "all weights are 0");
  refused("{name: subset, train_samples: 11, of: {name: numbers}}", "11 is more than the 10");
  refused("{name: split, test: 0.01, of: {name: numbers}}", "0 to test on");
  refused("{name: split, of: {name: repeat, of: {name: numbers}}}", "overlap");
}

TEST(Combined, ConfigsAreWrittenAsTheyAreRead) {
  const std::string yaml =
      "{name: mix, samples: 8, of: [{name: numbers, samples: 5, weight: 2}, {name: repeat, times: 7,"
      " of: {name: numbers, first: 6}}]}";
  const auto choice = config::load_as<Datasets::Choice>("dataset", yaml, "test.yaml");
  const auto text = config::dump_as("dataset", choice);
  EXPECT_THAT(text, HasSubstr("times: 7"));
  EXPECT_THAT(text, HasSubstr("first: 6"));
  EXPECT_THAT(text, HasSubstr("weight: 2"));
}

}  // namespace
}  // namespace phalanx
