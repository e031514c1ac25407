// SPDX-License-Identifier: Apache-2.0
#include "tools/command_line.h"

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

CommandLine parse(const std::vector<std::string>& words) {
  return parse_command_line({.name = "train", .purpose = "", .words = words});
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

TEST(CommandLine, SaysWhereTheRankMeetsTheOthers) {
  const auto line = parse({"--init_method=tcp://ph0:29500", "--rank", "0", "--world_size=4"});
  EXPECT_EQ(line.init.url, "tcp://ph0:29500");
  EXPECT_EQ(line.init.rank, 0);
  EXPECT_EQ(line.init.world_size, 4);
  EXPECT_TRUE(parse({}).init.empty());
  expect_refused({"--rank=x"}, R"(--rank: expected a whole number, got "x")");
  expect_refused({"--world_size=-1"}, R"(--world_size: expected a whole number, got "-1")");
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

TEST(CommandLine, AFileWithoutAFlagIsTheConfig) {
  EXPECT_EQ(parse({"a.yaml", "--run_dir", "runs/a"}).config, "a.yaml");
  EXPECT_EQ(parse({"--print_config", "a.yaml"}).config, "a.yaml");
}

TEST(CommandLine, BareAssignmentsAndSetAreOverridesInOrder) {
  const auto line = parse({"a.yaml", "seed=1", "--set", "seed=2", "optimizer.lr=0.1", "stages[0].layers=2"});
  EXPECT_THAT(line.overrides, ElementsAre("seed=1", "seed=2", "optimizer.lr=0.1", "stages[0].layers=2"));
  EXPECT_EQ(parse({"runs/lr=0.1/config.yaml"}).config, "runs/lr=0.1/config.yaml");
  EXPECT_THAT(parse({"a.yaml", "--run_dir", "lr=0.1"}).overrides, IsEmpty());
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

TEST(CommandLine, AHostJoinsWithNothingButItsRanks) {
  EXPECT_EQ(parse({"--join", "node1:7000"}).join, "node1:7000");
  EXPECT_EQ(parse({"--join", "node1:7000"}).join_ranks, 1);
  EXPECT_EQ(parse({"--join=node1:7000", "--ranks=4"}).join_ranks, 4);
  expect_refused({"--join=node1:7000", "a.yaml"}, "--join takes no other flag than --ranks");
  expect_refused({"--join=node1:7000", "seed=2"}, "--join takes no other flag than --ranks");
  expect_refused({"--join=node1:7000", "--print_config"}, "--join takes no other flag than --ranks");
  expect_refused({"--join=node1:7000", "--ranks=0"}, "a host joins with one rank at least");
  expect_refused({"a.yaml", "--ranks=2"}, "--ranks goes with --join; set launch.ranks for a job");
}

TEST(CommandLine, ASecondConfigIsRefused) {
  expect_refused({"--config", "a.yaml", "b.yaml"}, R"(unexpected argument "b.yaml")");
  expect_refused({"a.yaml", "b.yaml"}, R"(unexpected argument "b.yaml")");
  expect_refused({"a.yaml", "-"}, R"(unexpected argument "-")");
}

TEST(CommandLine, AValueThatDoesNotFitIsRefused) {
  expect_refused({"--print_config=maybe"}, "--print_config=maybe: expected true or false");
  expect_refused({"--noprint_config=true"}, R"(unknown flag "--noprint_config=true")");
  expect_refused({"--noconfig"}, R"(unknown flag "--noconfig")");
}

}  // namespace
}  // namespace phalanx
