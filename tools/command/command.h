// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tools/command/arguments.h"

namespace phalanx {

/// The groups in which --help lists commands, in this order.
enum class CommandGroup { kModels, kData, kPlanning, kNightly, kMachine, kShell, kHidden };

/// One of the things that the program phalanx can do: "phalanx train".
struct Command {
  std::string name;     // one word
  std::string purpose;  // a line for --help, which continues "phalanx NAME"
  CommandGroup group = CommandGroup::kHidden;
  int (*run)(const Arguments& arguments) = nullptr;  // returns the exit status; throws as run_main() documents
};

/// Adds a command to the table of this program, before main(). A tool does so in the last lines of its .cc file, whose
/// target needs `alwayslink = True`:
///
///     const bool eval_registered = register_command({"eval", "measures saved weights", CommandGroup::kModels, run});
///
/// Returns true. Throws std::logic_error if the name is taken.
bool register_command(const Command& command);

/// Returns the commands by group, sorted by name within a group.
const std::vector<Command>& commands();

/// Returns the command of a name, or nullptr.
const Command* find_command(const std::string& name);

/// Runs the command that a command line names, and returns its exit status. The name is the first word after the
/// program, or the name by which the program was called: links called "train" and "eval" to one executable are these
/// two commands. An executable with a single command always runs it. Prints the commands for --help, and to standard
/// error if no command is named, which is an error. Throws ConfigError for an unknown command, with a suggestion.
int run_command(const std::vector<std::string>& command_line);

}  // namespace phalanx
