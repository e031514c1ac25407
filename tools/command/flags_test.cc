// SPDX-License-Identifier: Apache-2.0
#include "tools/command/flags.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include "framework/base/error.h"

namespace phalanx {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::ExitedWithCode;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;

class FlagsTest : public ::testing::Test {
 protected:
  FlagsTest() : flags_({.name = "phalanx eat", .purpose = "eats fruit"}, {"--fruit pear"}, "known: apple, pear") {
    flags_.add("fruit", &fruit_, "what is eaten");
    flags_.add("pieces", &pieces_, "how many");
    flags_.add("seed", &seed_, "of the random numbers");
    flags_.add("weight", &weight_, "of one");
    flags_.add("peeled", &peeled_, "without its skin");
    flags_.add_path("basket", &basket_, "where it is");
    flags_.add_overrides(&overrides_, "key=value",
                         {"seed", "optimizer.lr", "train.epochs", "train.global_batch_size", "optimizer.pieces"});
  }

  std::vector<std::string> parse(const std::vector<std::string>& words) { return flags_.parse(words); }

  void expect_refused(const std::vector<std::string>& words, const std::string& why) {
    EXPECT_THAT([&] { parse(words); }, ThrowsMessage<ConfigError>(HasSubstr(why)));
  }

  std::string fruit_ = "apple", basket_;
  std::int32_t pieces_ = 2;
  std::uint64_t seed_ = 1;
  double weight_ = 0.9;
  bool peeled_ = false;
  std::vector<std::string> overrides_;
  Flags flags_;
};

TEST_F(FlagsTest, ValuesFollowASpaceOrAnEqualsSign) {
  EXPECT_THAT(parse({"--fruit", "pear", "-pieces=3", "--weight=1e-2"}), IsEmpty());
  EXPECT_EQ(fruit_, "pear");
  EXPECT_EQ(pieces_, 3);
  EXPECT_EQ(weight_, 1e-2);
  parse({"--fruit=--a=b", "--pieces", "-4"});
  EXPECT_EQ(fruit_, "--a=b");
  EXPECT_EQ(pieces_, -4);
  parse({"--fruit="});
  EXPECT_EQ(fruit_, "");
}

TEST_F(FlagsTest, WholeNumbersMayBeLargeOrHexadecimal) {
  parse({"--seed=18446744073709551615"});
  EXPECT_EQ(seed_, ~std::uint64_t{0});
  parse({"--seed=0xff"});
  EXPECT_EQ(seed_, 255U);
  expect_refused({"--seed=-1"}, "--seed=-1: expected a whole number");
}

TEST_F(FlagsTest, OverridesNeedNoFlag) {
  EXPECT_THAT(parse({"a.yaml", "optimizer.lr=0.1", "--set", "seed=--x", "--set=seed=3", "model={name: mlp}"}),
              ElementsAre("a.yaml"));
  EXPECT_THAT(overrides_, ElementsAre("optimizer.lr=0.1", "seed=--x", "seed=3", "model={name: mlp}"));
  EXPECT_THAT(parse({"runs/lr=1", "=1", "a b=1"}), ElementsAre("runs/lr=1", "=1", "a b=1"));
  expect_refused({"--set"}, "--set needs key=value after it");
}

TEST_F(FlagsTest, APositionalWordIsTheValueOfAFlagThatWasNotGiven) {
  std::vector<std::string> words{"a", "b"};
  std::string value, given = "c";
  take_positional(words, value);
  EXPECT_EQ(value, "a");
  take_positional(words, given);
  EXPECT_EQ(given, "c");
  EXPECT_THAT(words, ElementsAre("b"));
}

TEST_F(FlagsTest, APathMustNotBeEmpty) {
  expect_refused({"--basket="}, "--basket: is empty; give a path, or leave the flag out");
  expect_refused({"--basket", ""}, "--basket: is empty");
}

TEST_F(FlagsTest, SwitchesNeedNoValue) {
  EXPECT_THAT(parse({"--peeled", "today"}), ElementsAre("today"));
  EXPECT_TRUE(peeled_);
  parse({"--nopeeled"});
  EXPECT_FALSE(peeled_);
  parse({"--peeled=true"});
  EXPECT_TRUE(peeled_);
}

TEST_F(FlagsTest, OtherWordsAreReturned) {
  EXPECT_THAT(parse({"one", "--fruit=pear", "-", "two"}), ElementsAre("one", "-", "two"));
  EXPECT_THAT([] { refuse({"one"}); }, ThrowsMessage<ConfigError>(HasSubstr("unexpected argument \"one\"")));
  EXPECT_NO_THROW(refuse({}));
}

TEST_F(FlagsTest, AnUnknownFlagIsRefusedWithTheNearest) {
  expect_refused({"--friut=pear"}, R"(unknown flag "--friut=pear", did you mean --fruit?)");
  expect_refused({"--zzz"}, R"(unknown flag "--zzz"; see --help)");
  expect_refused({"--nofruit"}, R"(unknown flag "--nofruit")");
  expect_refused({"--helpxml"}, R"(unknown flag "--helpxml")");
  expect_refused({"--nopeeled=true"}, R"(unknown flag "--nopeeled=true")");
}

TEST_F(FlagsTest, AMissingOrMalformedValueIsRefused) {
  expect_refused({"--fruit"}, "--fruit needs a value after it");
  expect_refused({"--pieces=many"}, "--pieces=many: expected a whole number");
  expect_refused({"--pieces=99999999999"}, "expected a whole number that is not too large");
  expect_refused({"--pieces", "2.5"}, "--pieces=2.5: expected a whole number");
  expect_refused({"--weight=light"}, "--weight=light: expected a number");
  expect_refused({"--peeled=yes"}, "--peeled=yes: expected true or false");
}

TEST_F(FlagsTest, AKeyOfTheConfigIsRefusedWithTheIntendedOverride) {
  expect_refused({"--lr", "0.1"}, R"(unknown flag "--lr", did you mean --set optimizer.lr=0.1?)");
  expect_refused({"--epochs=3"}, R"(unknown flag "--epochs=3", did you mean --set train.epochs=3?)");
  expect_refused({"--learning-rate=1e-3"}, "did you mean --set optimizer.lr=1e-3?");
  expect_refused({"--batch_size", "32", "--peeled"}, "did you mean --set train.global_batch_size=32?");
  expect_refused({"--epochs", "--peeled"}, "did you mean --set train.epochs=VALUE?");
  expect_refused({"--optimizer.lr=[0.1, 2]"}, "did you mean --set 'optimizer.lr=[0.1, 2]'?");
  expect_refused({"--piece=3"}, "did you mean --pieces?");
}

using FlagsDeathTest = FlagsTest;

TEST_F(FlagsDeathTest, HelpShowsExamplesNotesAndFlags) {
  for (const char* flag : {"--help", "-h"}) {
    ::testing::internal::CaptureStdout();
    EXPECT_EXIT(
        {
          ::dup2(2, 1);
          parse({flag});
        },
        ExitedWithCode(0),
        AllOf(HasSubstr("phalanx eat: eats fruit\n\n  phalanx eat --fruit pear\n\nknown: apple, pear\n"),
              HasSubstr("  --fruit    what is eaten (default: apple)\n"), HasSubstr("(default: 0.9)\n"),
              HasSubstr("  --peeled   without its skin\n"), Not(HasSubstr(".cc"))));
    ::testing::internal::GetCapturedStdout();
  }
}

TEST_F(FlagsDeathTest, ListsWhatMayFollow) {
  ::testing::internal::CaptureStdout();
  EXPECT_EXIT(
      {
        ::dup2(2, 1);
        parse({std::string("--") + kListFlag});
      },
      ExitedWithCode(0), AllOf(StartsWith("--fruit\n--pieces\n"), HasSubstr("--help\n"), HasSubstr("optimizer.lr=\n")));
  ::testing::internal::GetCapturedStdout();
}

}  // namespace
}  // namespace phalanx
