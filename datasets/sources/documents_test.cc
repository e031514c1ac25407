// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "datasets/dataset.h"
#include "datasets/testing/idx_files.h"
#include "framework/base/config/config.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using Numbers = std::vector<std::int64_t>;

constexpr std::int64_t kEnd = 256;

class Documents : public ::testing::Test {
 protected:
  void SetUp() override { write("abc\n\n\nde\r\nf\n\nx\n\nyz\n"); }
  void write(const std::string& text) { std::ofstream(root_ / "documents.txt") << text; }
  Splits load(const std::string& more) const {
    return config::load_as<Datasets::Choice>(
               "dataset", "{name: documents, train_share: 0.5, root: " + root_.string() + more + "}", "test.yaml")
        .make();
  }
  static Numbers row(const Dataset& dataset, std::int64_t index, bool target) {
    Batch batch;
    dataset.gather(std::vector{index}, 0, batch);
    const auto& tensor = target ? batch.targets[0] : batch.inputs[0];
    return {tensor.const_data_ptr<std::int64_t>(), tensor.const_data_ptr<std::int64_t>() + tensor.numel()};
  }
  std::filesystem::path root_ = testing::fresh_folder("documents");
};

TEST_F(Documents, ArePackedOneAfterTheOther) {
  const auto splits = load(", context: 3");
  ASSERT_EQ(splits.train->size(), 2) << "abc. de f. are nine tokens";
  EXPECT_THAT(row(*splits.train, 0, false), ElementsAre('a', 'b', 'c'));
  EXPECT_THAT(row(*splits.train, 0, true), ElementsAre('b', 'c', kEnd));
  EXPECT_THAT(row(*splits.train, 1, false), ElementsAre(kEnd, 'd', 'e'));
  EXPECT_THAT(row(*splits.train, 1, true), ElementsAre('d', 'e', '\n'));
  EXPECT_EQ(splits.train->spec().inputs.at(0).classes, 257);
  EXPECT_FALSE(splits.train->spec().targets.at(0).ignored);
  EXPECT_EQ(splits.train->length(0), -1);
}

TEST_F(Documents, ArePaddedSeparately) {
  const auto splits = load(", context: 3, packing: pad");
  ASSERT_EQ(splits.train->size(), 3);
  EXPECT_THAT(row(*splits.train, 1, false), ElementsAre('d', 'e', '\n'));
  EXPECT_THAT(row(*splits.train, 2, false), ElementsAre('f', kEnd, kEnd));
  EXPECT_THAT(row(*splits.train, 2, true), ElementsAre(kEnd, kIgnored, kIgnored));
  EXPECT_EQ(splits.train->length(2), 1);
  EXPECT_EQ(splits.test->size(), 2);
  EXPECT_THAT(row(*splits.test, 1, true), ElementsAre('z', kEnd, kIgnored));
  EXPECT_TRUE(splits.train->spec().targets.at(0).ignored);
}

TEST_F(Documents, HaveASeparatorOfTheirOwn) {
  write("a\n\nb\n<|end|>\nc\n");
  const auto splits = load(", context: 8, packing: pad, separator: <|end|>");
  EXPECT_EQ(splits.train->length(0), 4) << "a, two line ends, b";
}

TEST_F(Documents, SayWhatIsMissing) {
  EXPECT_THAT([&] { load(", context: 90"); },
              ThrowsMessage<DataError>(HasSubstr("documents.txt: 2 of its documents have 9 tokens")));
  write("all in one\n");
  EXPECT_THAT([&] { load(""); }, ThrowsMessage<DataError>(HasSubstr("has 1 documents, and dataset.train_share")));
}

}  // namespace
}  // namespace phalanx
