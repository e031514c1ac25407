// SPDX-License-Identifier: Apache-2.0
#include "tools/command/command.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <stdexcept>

#include "framework/base/error.h"
#include "launch/exit_status.h"

namespace phalanx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::ThrowsMessage;

constexpr int kStatus = 7;
Arguments received;

int receive(const Arguments& arguments) {
  received = arguments;
  return kStatus;
}

const bool train_registered = register_command({"train", "trains", CommandGroup::kModels, receive});
const bool data_registered = register_command({"data", "inspects data", CommandGroup::kData, receive});
const bool eval_registered = register_command({"eval", "evaluates", CommandGroup::kModels, receive});
const bool probe_registered = register_command({"probe", "answers", CommandGroup::kHidden, receive});

std::string output_of(const std::vector<std::string>& command_line, int status) {
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(run_command(command_line), status);
  return ::testing::internal::GetCapturedStdout();
}

void expect_refused(const std::vector<std::string>& command_line, const std::string& why) {
  EXPECT_THAT([&] { run_command(command_line); }, ThrowsMessage<ConfigError>(HasSubstr(why)));
}

TEST(Command, AreSortedByGroupAndName) {
  std::vector<std::string> names;
  for (const auto& command : commands()) names.push_back(command.name);
  EXPECT_THAT(names, ElementsAre("eval", "train", "data", "probe"));
}

TEST(Command, HaveDifferentNames) {
  EXPECT_THROW(register_command({"train", "trains again", CommandGroup::kData, receive}), std::logic_error);
}

TEST(Command, IsTheFirstWord) {
  EXPECT_EQ(run_command({"/a/phalanx", "train", "x.yaml", "--help"}), kStatus);
  EXPECT_EQ(received.name, "phalanx train");
  EXPECT_EQ(received.purpose, "trains");
  EXPECT_THAT(received.words, ElementsAre("x.yaml", "--help"));
}

TEST(Command, IsTheNameOfALinkToTheProgram) {
  EXPECT_EQ(run_command({"bazel-bin/tools/train", "data", "x.yaml"}), kStatus);
  EXPECT_EQ(received.name, "train");
  EXPECT_THAT(received.words, ElementsAre("data", "x.yaml"));
}

TEST(Command, CanBeStartedAgainInAnyFolderUnderAnyName) {
  const std::string self = std::filesystem::canonical("/proc/self/exe");
  run_command({"tools/train", "x.yaml"});
  EXPECT_THAT(received.command_line(), ElementsAre(self, "train", "x.yaml"));
  run_command({"phalanx", "train", "x.yaml"});
  EXPECT_THAT(received.command_line(), ElementsAre(self, "train", "x.yaml"));
}

TEST(Command, AnUnknownNameIsRefusedWithTheNearest) {
  expect_refused({"phalanx", "trian"}, R"(unknown command "trian", did you mean phalanx train? See phalanx --help)");
  expect_refused({"phalanx", "zzz"}, R"(unknown command "zzz" See phalanx --help)");
  expect_refused({"phalanx", "probee"}, R"(unknown command "probee" See)");
}

TEST(Command, AConfigWithoutACommandIsRefusedWithTheCommand) {
  expect_refused({"phalanx", "configs/x.yaml"}, "did you mean phalanx train configs/x.yaml?");
}

TEST(Command, AFlagBeforeTheCommandIsRefused) {
  expect_refused({"phalanx", "--config", "x.yaml"}, R"(unknown flag "--config": a command comes first)");
}

TEST(Command, HelpListsTheCommandsByGroup) {
  for (const char* flag : {"--help", "-h"}) {
    const auto text = output_of({"/a/phalanx", flag}, kDone);
    EXPECT_THAT(text, HasSubstr("Train and use models:\n  eval   evaluates\n  train  trains\n"));
    EXPECT_THAT(text, HasSubstr("  data   inspects data\n"));
    EXPECT_THAT(text, Not(HasSubstr("answers")));
  }
}

TEST(Command, WithoutAWordPrintsHelpToStandardErrorAndFails) {
  ::testing::internal::CaptureStderr();
  EXPECT_THAT(output_of({"phalanx"}, kUsage), IsEmpty());
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("Train and use models:\n"));
}

TEST(CommandDeathTest, PrintsTheVersion) {
  EXPECT_EXIT(run_command({"/a/phalanx", "--version"}), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace phalanx
