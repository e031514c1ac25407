// SPDX-License-Identifier: Apache-2.0
#include <c10/util/Exception.h>
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "datasets/dataset.h"
#include "datasets/testing/idx_files.h"
#include "datasets/text/tokenizer.h"
#include "framework/base/config/config.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using Numbers = std::vector<std::int64_t>;

class Text : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("PHALANX_DATA", root_.parent_path().c_str(), 1);
    unsetenv("BUILD_WORKING_DIRECTORY");
    // The sorted characters are e h l o w, so hello is 1 0 2 2 3.
    write("input.txt", "hellohellohellohelloweowe");
  }

  void write(const std::string& name, const std::string& text) const {
    testing::write_plain(root_ / name, {text.begin(), text.end()});
  }

  static Splits load(const std::string& settings = "context: 4, train_share: 0.8") {
    return config::load_as<Datasets::Choice>("dataset", "{name: text, " + settings + "}", "test.yaml").make();
  }

  static Batch gather(const Dataset& split, const Numbers& indices) {
    Batch batch;
    split.gather(indices, 0, batch);
    return batch;
  }

  static Numbers values(const at::Tensor& tensor) {
    const auto* first = tensor.data_ptr<std::int64_t>();
    return {first, first + tensor.numel()};
  }

  static auto refused(const std::string& message) { return ThrowsMessage<DataError>(HasSubstr(message)); }

  std::filesystem::path root_ = testing::fresh_folder("text_test/text");
};

TEST_F(Text, ASampleIsCharactersAndTheSameShiftedByOne) {
  const auto splits = load();
  const auto batch = gather(*splits.train, {1, 0});
  ASSERT_EQ(batch.inputs[0].sizes(), at::IntArrayRef({2, 4}));
  EXPECT_EQ(values(batch.inputs[0]), (Numbers{3, 1, 0, 2, /**/ 1, 0, 2, 2}));
  EXPECT_EQ(values(batch.targets[0]), (Numbers{1, 0, 2, 2, /**/ 0, 2, 2, 3}));
}

TEST_F(Text, HasTheSpecThatAModelNeeds) {
  const auto spec = load().train->spec();
  EXPECT_EQ(spec.inputs.at(0).shape, Numbers{4});
  EXPECT_EQ(spec.targets.at(0).classes, 5) << "w occurs in the test part alone, but counts";
  EXPECT_EQ(spec.inputs[0].dtype, at::kLong);
}

TEST_F(Text, EveryCharacterIsPredictedOnce) {
  const auto splits = load();
  ASSERT_EQ(splits.train->size(), 4) << "20 characters: 19 have one before them, and 4 samples take 16 of these";
  Numbers targets;
  for (std::int64_t i = 0; i < 4; ++i) {
    for (const auto value : values(gather(*splits.train, {i}).targets[0])) targets.push_back(value);
  }
  EXPECT_EQ(targets, (Numbers{0, 2, 2, 3, 1, 0, 2, 2, 3, 1, 0, 2, 2, 3, 1, 0}));
  EXPECT_EQ(splits.test->size(), 1);
  EXPECT_EQ(values(gather(*splits.test, {0}).inputs[0]), (Numbers{4, 0, 3, 4})) << "begins after the training part";
}

TEST_F(Text, AStrideOfOneGivesASampleAtEveryOffset) {
  const auto splits = load("context: 4, train_share: 0.8, stride: 1");
  EXPECT_EQ(splits.train->size(), 16);
  EXPECT_EQ(values(gather(*splits.train, {15}).targets[0]), (Numbers{0, 2, 2, 3})) << "the last characters";
  EXPECT_EQ(splits.test->size(), 1) << "testing counts each character once";
}

TEST_F(Text, ALastSampleMayEndWithTheText) {
  write("input.txt", "abcdefghijabcdefghij");  // ten characters for each split
  EXPECT_EQ(load("context: 9, train_share: 0.5, stride: 1").train->size(), 1);
  EXPECT_EQ(load("context: 9, train_share: 0.5, stride: 30").train->size(), 1);
  EXPECT_EQ(load("context: 3, train_share: 0.5").train->size(), 3);
}

TEST_F(Text, CharactersAreCodePoints) {
  write("input.txt", "猫é猫a猫é猫a");  // sorted: a é 猫
  const auto splits = load("context: 2, train_share: 0.5");
  EXPECT_EQ(splits.train->spec().targets.at(0).classes, 3);
  EXPECT_EQ(values(gather(*splits.train, {0}).inputs[0]), (Numbers{2, 1}));
  EXPECT_EQ(values(gather(*splits.test, {0}).targets[0]), (Numbers{1, 2})) << "the border is between characters";
  EXPECT_EQ(splits.tokenizer->encode("é猫"), (Numbers{1, 2}));
  EXPECT_EQ(splits.tokenizer->decode(Numbers{1, 2}), "é猫");
  EXPECT_THAT([&] { splits.tokenizer->encode("a犬"); }, refused("the text has \"犬\", which does not occur"));
}

TEST_F(Text, MayHaveMoreThan256Characters) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += {static_cast<char>(0xc4 + i / 64), static_cast<char>(0x80 + i % 64)};
  write("input.txt", text);  // U+0100 to U+022B
  const auto splits = load("context: 100, train_share: 0.5");
  EXPECT_EQ(splits.train->spec().targets.at(0).classes, 300);
  EXPECT_EQ(values(gather(*splits.test, {0}).inputs[0])[99], 249);
}

TEST_F(Text, IsUtf8OrBytes) {
  const auto file = (root_ / "input.txt").string();
  write("input.txt", "caf\xe9 caf\xe9 ");
  EXPECT_THAT([] { load("context: 2, train_share: 0.5"); }, refused(file + ": is not UTF-8 at byte 3; convert it, or"));
  const auto splits = load("context: 2, train_share: 0.5, unit: bytes");
  EXPECT_EQ(splits.train->spec().targets.at(0).classes, 5);
  EXPECT_EQ(splits.tokenizer->decode(splits.tokenizer->encode("f\xe9")), "f\xe9");
}

TEST_F(Text, KnowsEveryByte) {
  std::string bytes;
  for (int i = 255; i >= 0; --i) bytes += static_cast<char>(i);
  write("bytes.txt", bytes + bytes);
  const auto splits = load("file: bytes.txt, root: " + root_.string() + ", context: 3, train_share: 0.5, unit: bytes");
  EXPECT_EQ(splits.train->spec().targets.at(0).classes, 256);
  EXPECT_EQ(values(gather(*splits.train, {0}).inputs[0]), (Numbers{255, 254, 253}));
}

TEST_F(Text, TheFileMayBeElsewhere) {
  write("other.txt", "abababababababababab");
  const auto path = (root_ / "other.txt").string();
  const std::string settings = ", context: 2, train_share: 0.5";
  EXPECT_EQ(load("file: " + path + settings).train->spec().targets.at(0).classes, 2);
  EXPECT_EQ(load("file: " + path + ", root: /elsewhere" + settings).train->spec().targets.at(0).classes, 2)
      << "absolute";
  setenv("BUILD_WORKING_DIRECTORY", root_.c_str(), 1);
  EXPECT_EQ(load("file: ./other.txt" + settings).train->spec().targets.at(0).classes, 2)
      << "relative to the folder of the caller";
}

TEST_F(Text, SaysWhatIsMissingWhereAndWhatToDo) {
  setenv("PHALANX_DATA", "/nowhere", 1);
  EXPECT_THAT([] { load(); }, refused("dataset \"text\": files are missing from /nowhere/text (no such folder):\n"
                                      "  input.txt\nAny text file will do. To use another one: set dataset.file"));
  setenv("BUILD_WORKING_DIRECTORY", root_.c_str(), 1);
  EXPECT_THAT([] { load("file: book.txt"); }, refused("missing from " + root_.string() + ":\n  book.txt\n"));
}

TEST_F(Text, RefusesATextThatIsTooShortForASample) {
  const auto file = (root_ / "input.txt").string();
  EXPECT_THAT([] { load("context: 20, train_share: 0.8"); },
              refused(file + ": 20 characters remain for training, but a sample needs 21 (dataset.context and one"));
  EXPECT_THAT([] { load("context: 5, train_share: 0.8"); }, refused(file + ": 5 characters remain for testing"));
  write("input.txt", "");
  EXPECT_THAT([] { load(); }, refused(file + ": 0 characters remain for training"));
}

TEST_F(Text, RefusesSharesThatLeaveASplitEmpty) {
  EXPECT_THROW(load("train_share: 1"), ConfigError);
  EXPECT_THROW(load("train_share: 0"), ConfigError);
  EXPECT_THROW(load("context: 0"), ConfigError);
}

TEST_F(Text, RefusesAnIndexOutOfRange) {
  EXPECT_THROW(gather(*load().train, {4}), c10::IndexError);
  EXPECT_THROW(gather(*load().train, {-1}), c10::IndexError);
}

}  // namespace
}  // namespace phalanx
