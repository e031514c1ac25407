// SPDX-License-Identifier: Apache-2.0
#include "tools/command/command.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/text.h"
#include "launch/exit_status.h"
#include "tools/command/flags.h"

namespace phalanx {
namespace {

std::vector<Command>& table() {
  static std::vector<Command> table;
  return table;
}

const std::map<CommandGroup, std::string> kTitles = {
    {CommandGroup::kModels, "Train and use models"},
    {CommandGroup::kData, "Find and prepare what a config names"},
    {CommandGroup::kPlanning, "Plan a run"},
    {CommandGroup::kNightly, "Nightly runs"},
    {CommandGroup::kMachine, "Examine machines, and serve parameters"},
    {CommandGroup::kShell, "Complete commands in a shell"},
};

std::string help_of(const std::string& program) {
  std::size_t width = 0;
  for (const auto& command : commands()) width = std::max(width, command.name.size());
  std::string text = program + ": distributed training of LibTorch models\n\n  " + program +
                     " train configs/quickstart.yaml optimizer.lr=0.05 launch.ranks=4\n  " + program +
                     " COMMAND --help\n";
  for (const auto& [group, title] : kTitles) {
    text += "\n" + title + ":\n";
    for (const auto& command : commands()) {
      if (command.group != group) continue;
      text += "  " + command.name + std::string(width - command.name.size() + 2, ' ') + command.purpose + "\n";
    }
  }
  return text;
}

[[noreturn]] void refuse_command(const std::string& program, const std::string& word) {
  std::vector<std::string> names;
  for (const auto& command : commands()) {
    if (command.group != CommandGroup::kHidden) names.push_back(command.name);
  }
  std::string near = nearest(word, names);
  if (word.ends_with(".yaml")) near = "train " + word;
  throw ConfigError("unknown command \"" + word + "\"" +
                    (near.empty() ? "" : ", did you mean " + program + " " + near + "?") + " See " + program +
                    " --help");
}

// Returns the arguments of a command whose name is not among the words.
Arguments arguments_of(const Command& command, const std::string& called, std::vector<std::string> words) {
  Arguments arguments{.name = called, .purpose = command.purpose, .words = std::move(words)};
  arguments.program.push_back(std::filesystem::canonical("/proc/self/exe").string());
  if (commands().size() > 1) arguments.program.push_back(command.name);
  return arguments;
}

int run_first_word(const std::string& program, std::vector<std::string> words) {
  if (words.empty()) {
    std::fputs(help_of(program).c_str(), stderr);
    return kUsage;
  }
  const std::string first = words.front();
  if (const Command* const command = find_command(first)) {
    words.erase(words.begin());
    return command->run(arguments_of(*command, program + " " + first, std::move(words)));
  }
  const auto flag = as_flag(first);
  if (!flag) refuse_command(program, first);
  if (flag->name == "version") print_version(program);
  if (flag->name != "help" && flag->name != "h") {
    throw ConfigError("unknown flag \"" + first + "\": a command comes first, see " + program + " --help");
  }
  std::fputs(help_of(program).c_str(), stdout);
  return kDone;
}

}  // namespace

bool register_command(const Command& command) {
  auto& all = table();
  if (find_command(command.name) != nullptr) throw std::logic_error("registered twice: command " + command.name);
  const auto rank = [](const Command& one) { return std::tie(one.group, one.name); };
  all.insert(std::ranges::upper_bound(all, rank(command), {}, rank), command);
  return true;
}

const std::vector<Command>& commands() { return table(); }

const Command* find_command(const std::string& name) {
  const auto found = std::ranges::find(table(), name, &Command::name);
  return found == table().end() ? nullptr : &*found;
}

int run_command(const std::vector<std::string>& command_line) {
  std::vector<std::string> words = command_line;
  const std::string called = words.empty() ? "phalanx" : std::filesystem::path(words.front()).filename().string();
  if (!words.empty()) words.erase(words.begin());
  const Command* const command = commands().size() == 1 ? &commands().front() : find_command(called);
  if (command != nullptr) return command->run(arguments_of(*command, called, std::move(words)));
  return run_first_word(called, std::move(words));
}

}  // namespace phalanx
