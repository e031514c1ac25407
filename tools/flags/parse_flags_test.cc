// SPDX-License-Identifier: Apache-2.0
#include "tools/flags/parse_flags.h"

#include <gflags/gflags.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include "framework/base/error.h"

DEFINE_string(fruit, "apple", "what is eaten");
DEFINE_int32(pieces, 2, "how many");
DEFINE_double(weight, 0.5, "of one");
DEFINE_bool(peeled, false, "without its skin");

namespace phalanx {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::ExitedWithCode;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::ThrowsMessage;

const Program kProgram{.purpose = "eats fruit",
                       .files = "tools/flags/",
                       .keys = {"seed", "optimizer.lr", "train.epochs", "train.global_batch_size", "optimizer.pieces"}};

class ParseFlags : public ::testing::Test {
 protected:
  static std::vector<std::string> parse(const std::vector<std::string>& words) { return parse_flags(kProgram, words); }

  static void expect_refused(const std::vector<std::string>& words, const std::string& why) {
    EXPECT_THAT([&] { parse(words); }, ThrowsMessage<ConfigError>(HasSubstr(why)));
  }

 private:
  const google::FlagSaver flags_as_they_were_;
};

TEST_F(ParseFlags, ValuesFollowASpaceOrAnEqualsSign) {
  EXPECT_THAT(parse({"--fruit", "pear", "-pieces=3", "--weight=1e-2"}), IsEmpty());
  EXPECT_EQ(FLAGS_fruit, "pear");
  EXPECT_EQ(FLAGS_pieces, 3);
  EXPECT_EQ(FLAGS_weight, 1e-2);
  parse({"--fruit=--a=b", "--pieces", "-4"});
  EXPECT_EQ(FLAGS_fruit, "--a=b");
  EXPECT_EQ(FLAGS_pieces, -4);
  parse({"--fruit="});
  EXPECT_EQ(FLAGS_fruit, "");
}

TEST_F(ParseFlags, SkipsTheNameOfTheProgram) {
  std::string name = "eat", word = "pear";
  char* words[] = {name.data(), word.data()};
  EXPECT_THAT(parse_flags(kProgram, 2, words), ElementsAre("pear"));
  EXPECT_THAT(parse_flags(kProgram, 0, words), IsEmpty());
}

TEST_F(ParseFlags, SwitchesNeedNoValue) {
  EXPECT_THAT(parse({"--peeled", "today"}), ElementsAre("today"));
  EXPECT_TRUE(FLAGS_peeled);
  parse({"--nopeeled"});
  EXPECT_FALSE(FLAGS_peeled);
  parse({"--peeled=true"});
  EXPECT_TRUE(FLAGS_peeled);
}

TEST_F(ParseFlags, OtherWordsAreReturned) {
  EXPECT_THAT(parse({"one", "--fruit=pear", "-", "two"}), ElementsAre("one", "-", "two"));
  EXPECT_THAT([] { refuse({"one"}); }, ThrowsMessage<ConfigError>(HasSubstr("unexpected argument \"one\"")));
  EXPECT_NO_THROW(refuse({}));
}

TEST_F(ParseFlags, AnUnknownFlagIsRefusedWithTheNearest) {
  expect_refused({"--friut=pear"}, R"(unknown flag "--friut=pear", did you mean --fruit?)");
  expect_refused({"--zzz"}, R"(unknown flag "--zzz" See --help)");
  expect_refused({"--nofruit"}, R"(unknown flag "--nofruit")");
  expect_refused({"--helpxml"}, R"(unknown flag "--helpxml")");
  expect_refused({"--nopeeled=true"}, R"(unknown flag "--nopeeled=true")");
}

TEST_F(ParseFlags, AMissingOrMalformedValueIsRefused) {
  expect_refused({"--fruit"}, "--fruit needs a value after it");
  expect_refused({"--pieces=many"}, "--pieces=many: expected a whole number");
  expect_refused({"--pieces=99999999999"}, "expected a whole number that is not too large");
  expect_refused({"--pieces", "2.5"}, "--pieces=2.5: expected a whole number");
  expect_refused({"--weight=light"}, "--weight=light: expected a number");
  expect_refused({"--peeled=yes"}, "--peeled=yes: expected true or false");
}

TEST_F(ParseFlags, AKeyOfTheConfigIsRefusedWithTheIntendedOverride) {
  expect_refused({"--lr", "0.1"}, R"(unknown flag "--lr", did you mean --set optimizer.lr=0.1?)");
  expect_refused({"--epochs=3"}, R"(unknown flag "--epochs=3", did you mean --set train.epochs=3?)");
  expect_refused({"--learning-rate=1e-3"}, "did you mean --set optimizer.lr=1e-3?");
  expect_refused({"--batch_size", "32", "--peeled"}, "did you mean --set train.global_batch_size=32?");
  expect_refused({"--seed", "--peeled"}, "did you mean --set seed=VALUE?");
  expect_refused({"--optimizer.lr=[0.1, 2]"}, "did you mean --set 'optimizer.lr=[0.1, 2]'?");
  expect_refused({"--piece=3"}, "did you mean --pieces?");
}

using ParseFlagsDeathTest = ParseFlags;

TEST_F(ParseFlagsDeathTest, HelpShowsOnlyTheFlagsOfTheProgram) {
  for (const char* flag : {"--help", "-h"}) {
    ::testing::internal::CaptureStdout();
    EXPECT_EXIT(
        {
          ::dup2(2, 1);
          parse({flag});
        },
        ExitedWithCode(0),
        AllOf(HasSubstr("eats fruit\n"), HasSubstr("  --fruit    what is eaten (default: apple)\n"),
              HasSubstr("  --peeled   without its skin\n"), Not(HasSubstr("flagfile")), Not(HasSubstr(".cc"))));
    ::testing::internal::GetCapturedStdout();
  }
}

}  // namespace
}  // namespace phalanx
