// SPDX-License-Identifier: Apache-2.0
#include "tools/command_line.h"

#include <gflags/gflags.h>
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "framework/base/error.h"

namespace phalanx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

CommandLine parse(std::vector<std::string> words) {
  const google::FlagSaver flags_as_they_were;
  words.insert(words.begin(), "train");
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  return parse_command_line(static_cast<int>(argv.size()), argv.data());
}

void expect_refused(const std::vector<std::string>& words, const std::string& why) {
  EXPECT_THAT([&] { parse(words); }, ThrowsMessage<ConfigError>(HasSubstr(why)));
}

TEST(CommandLine, IsEmptyWithoutFlags) {
  const auto line = parse({});
  EXPECT_EQ(line.config, "");
  EXPECT_EQ(line.run_dir, "");
  EXPECT_THAT(line.overrides, IsEmpty());
  EXPECT_FALSE(line.print_config);
  EXPECT_FALSE(line.help_config);
}

TEST(CommandLine, ValuesFollowASpaceOrAnEqualsSign) {
  for (const auto& words : {std::vector<std::string>{"--config", "a.yaml", "--run_dir", "runs/a"},
                            {"--config=a.yaml", "--run_dir=runs/a"},
                            {"-config", "a.yaml", "-run_dir=runs/a"}}) {
    EXPECT_EQ(parse(words).config, "a.yaml");
    EXPECT_EQ(parse(words).run_dir, "runs/a");
  }
}

TEST(CommandLine, AnEmptyPathIsRefused) {
  expect_refused({"--config=a.yaml", "--run_dir="}, "--run_dir: is empty; give a path, or leave the flag out");
  expect_refused({"--config=a.yaml", "--run_dir", ""}, "--run_dir: is empty");
  expect_refused({"--config=a.yaml", "--resume", ""}, "--resume: is empty");
  expect_refused({"--config", ""}, "--config: is empty");
}

TEST(CommandLine, EverySetCountsInBothSpellingsAndInOrder) {
  const auto line = parse(
      {"--set", "optimizer.lr=0.05", "--config", "a.yaml", "--set=train.epochs=3", "-set", "seed=7", "--set=seed=8"});
  EXPECT_THAT(line.overrides, ElementsAre("optimizer.lr=0.05", "train.epochs=3", "seed=7", "seed=8"));
  EXPECT_EQ(line.config, "a.yaml");
}

TEST(CommandLine, AnOverrideMayHaveAnyValue) {
  EXPECT_THAT(parse({"--set", "model={name: mlp, hidden: [3, 5]}", "--set", "name=--config=x"}).overrides,
              ElementsAre("model={name: mlp, hidden: [3, 5]}", "name=--config=x"));
}

TEST(CommandLine, SwitchesNeedNoValue) {
  EXPECT_TRUE(parse({"--print_config", "--config", "a.yaml"}).print_config);
  EXPECT_TRUE(parse({"--help_config"}).help_config);
  EXPECT_FALSE(parse({"--print_config", "--noprint_config"}).print_config);
  EXPECT_FALSE(parse({"--print_config=false"}).print_config);
}

TEST(CommandLine, HelpMayBeLimitedToOneSection) {
  EXPECT_EQ(parse({"--help_config"}).help_section, "");
  for (const auto& words : {std::vector<std::string>{"--help_config", "train"}, {"--help_config=train"}}) {
    EXPECT_TRUE(parse(words).help_config);
    EXPECT_EQ(parse(words).help_section, "train");
  }
  EXPECT_FALSE(parse({"--help_config=false"}).help_config);
  expect_refused({"--help_config", "train", "model"}, R"(unexpected argument "train")");
}

TEST(CommandLine, AFileWithoutAFlagIsRefusedWithTheFlagThatIsMissing) {
  expect_refused({"a.yaml"}, R"(unexpected argument "a.yaml", did you mean --config a.yaml?)");
}

TEST(CommandLine, AnUnknownFlagIsRefusedWithTheNearest) {
  expect_refused({"--confg", "a.yaml"}, R"(unknown flag "--confg", did you mean --config?)");
  expect_refused({"--rundir=x"}, R"(unknown flag "--rundir=x", did you mean --run_dir?)");
  expect_refused({"--zzz"}, R"(unknown flag "--zzz")");
}

TEST(CommandLine, AMissingValueIsRefused) {
  expect_refused({"--config"}, "--config needs a value");
  expect_refused({"--config", "a.yaml", "--run_dir"}, "--run_dir needs a value");
  expect_refused({"--config", "a.yaml", "--set"}, "--set needs key=value");
}

TEST(CommandLine, APositionalArgumentIsRefused) {
  expect_refused({"a.yaml"}, R"(unexpected argument "a.yaml")");
  expect_refused({"--config", "a.yaml", "b.yaml"}, R"(unexpected argument "b.yaml")");
  expect_refused({"--print_config", "true"}, R"(unexpected argument "true")");
  expect_refused({"-"}, R"(unexpected argument "-")");
}

TEST(CommandLine, AValueThatDoesNotFitIsRefused) {
  expect_refused({"--print_config=maybe"}, "--print_config=maybe: expected true or false");
  expect_refused({"--noprint_config=true"}, R"(unknown flag "--noprint_config=true")");
  expect_refused({"--noconfig"}, R"(unknown flag "--noconfig")");
}

}  // namespace
}  // namespace phalanx
