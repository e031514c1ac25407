// SPDX-License-Identifier: Apache-2.0
#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include "datasets/dataset.h"
#include "datasets/testing/splits.h"
#include "framework/base/config/config.h"
#include "framework/base/error.h"
#include "framework/base/files.h"

namespace phalanx {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr std::int64_t kTokens = 40, kContext = 50, kMask = kTokens;

std::string masked(const std::string& fields = "") {
  return "{name: masked_tokens" + fields +
         ", of: {name: random_tokens, context: 50, vocabulary: 40, train_samples: 400, order: 0}}";
}

double mean(const at::Tensor& flags) { return flags.to(at::kDouble).mean().item<double>(); }

TEST(MaskedTokens, HideTheConfiguredShares) {
  const auto splits = testing::load_splits(masked(", share: 0.3, random: 0.2, kept: 0.3"));
  EXPECT_EQ(splits.train->spec().inputs[0].classes, kTokens + 1);
  EXPECT_EQ(splits.train->spec().task, "masked_language_modelling");
  const auto plain = testing::read_first(
      *testing::load_splits("{name: random_tokens, context: 50, vocabulary: 40, train_samples: 400, order: 0}").train,
      400);
  const auto batch = testing::read_first(*splits.train, 400);
  const auto &seen = batch.inputs[0], &target = batch.targets[0], &text = plain.inputs[0];
  const at::Tensor chosen = target.ne(kIgnored);
  EXPECT_NEAR(mean(chosen), 0.3, 0.02);
  EXPECT_TRUE(at::equal(target.masked_select(chosen), text.masked_select(chosen)));
  EXPECT_TRUE(at::equal(seen.masked_select(~chosen), text.masked_select(~chosen)));
  const at::Tensor hidden = seen.masked_select(chosen), were = text.masked_select(chosen);
  EXPECT_NEAR(mean(hidden.eq(kMask)), 0.5, 0.03);
  EXPECT_NEAR(mean(hidden.eq(were)), 0.3 + 0.2 / kTokens, 0.03);
  EXPECT_LE(hidden.max().item<std::int64_t>(), kMask);
}

TEST(MaskedTokens, AreDrawnForEachEpochInTrainingAndOnceForTesting) {
  const auto splits = testing::load_splits(masked());
  const auto first = testing::read_first(*splits.train, 20, 1), again = testing::read_first(*splits.train, 20, 1),
             next = testing::read_first(*splits.train, 20, 2);
  EXPECT_TRUE(at::equal(first.inputs[0], again.inputs[0]));
  EXPECT_FALSE(at::equal(first.targets[0], next.targets[0]));
  EXPECT_TRUE(at::equal(testing::read_first(*splits.test, 20, 1).inputs[0],
                        testing::read_first(*splits.test, 20, 2).inputs[0]));
  ASSERT_TRUE(splits.train->unchanged());
  const auto held = splits.train->unchanged();
  EXPECT_TRUE(at::equal(testing::read_first(*held, 20, 1).inputs[0], testing::read_first(*held, 20, 2).inputs[0]));
  Batch one;
  splits.train->gather(std::vector<std::int64_t>{7}, 1, one);
  EXPECT_TRUE(at::equal(one.inputs[0][0], first.inputs[0][7])) << "whatever else is in the batch";
}

TEST(MaskedTokens, HideAtLeastOneOfEachSample) {
  const auto batch = testing::read_first(*testing::load_splits(masked(", share: 0.0001, mask: 3")).train, 400);
  const at::Tensor chosen = batch.targets[0].ne(kIgnored).sum(1);
  EXPECT_EQ(chosen.min().item<std::int64_t>(), 1);
  EXPECT_LE(batch.inputs[0].max().item<std::int64_t>(), kTokens - 1) << "a mask that there is already";
}

TEST(MaskedTokens, NeverHidePadding) {
  const std::string folder = ::testing::TempDir() + "/masked";
  std::filesystem::create_directories(folder);
  write_atomically(folder + "/documents.txt", "one\n\nand two\n\nthree is longer\n\nfour\n");
  const auto splits = testing::load_splits(
      "{name: masked_tokens, share: 0.9, of: {name: documents, packing: pad, context: 20, "
      "train_share: 0.75, root: " +
      folder + "}}");
  const auto& train = *splits.train;
  const auto batch = testing::read_first(train, train.size());
  for (std::int64_t i = 0; i < train.size(); ++i) {
    const auto length = train.length(i);
    ASSERT_LT(length, 20);
    EXPECT_TRUE(batch.targets[0][i].narrow(0, length, 20 - length).eq(kIgnored).all().item<bool>()) << i;
    EXPECT_TRUE(batch.targets[0][i].narrow(0, 0, length).ne(kIgnored).any().item<bool>()) << i;
  }
}

TEST(MaskedTokens, RefuseSamplesThatAreNotText) {
  const auto refused = [](const std::string& message) { return ThrowsMessage<ConfigError>(HasSubstr(message)); };
  EXPECT_THAT([] { testing::load_splits("{name: masked_tokens, of: {name: spirals}}"); },
              refused("hides tokens of a text, but the samples of this dataset are for task classification"));
  EXPECT_THAT([] { testing::load_splits(masked(", random: 0.6, kept: 0.6")); }, refused("their sum is more than 1"));
  EXPECT_THAT([] { testing::load_splits("masked_tokens"); }, refused("dataset.of: a dataset is missing"));
}

}  // namespace
}  // namespace phalanx
