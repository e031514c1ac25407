// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace phalanx {

/// A program as --help tells of it.
struct Program {
  std::string purpose;  // what it does, in a line; an example may follow
  std::string files;    // how the paths of the files begin that define its flags (DEFINE_... of gflags): libraries
                        // bring others along
  std::vector<std::string> keys{};  // paths that its --set takes: who writes --lr 0.1 means --set optimizer.lr=0.1
};

/// A flag as it is written: "--set=a=b" has the name "set" and the value "a=b".
struct WrittenFlag {
  std::string name;
  std::optional<std::string> value;  // behind an equals sign
};

/// None for a word that is no flag.
std::optional<WrittenFlag> as_flag(const std::string& word);

/// Sets the program's flags that are among `words`, as --name=value, --name value, --switch or --noswitch, and returns
/// the other words. --help (-h) prints the flags, --version the version, and both end the process with status 0. Throws
/// ConfigError for a flag that the program does not have, with what was probably meant, and for a value that is missing
/// or does not fit.
std::vector<std::string> parse_flags(const Program& program, const std::vector<std::string>& words);

/// The same for main()'s words, without the first.
std::vector<std::string> parse_flags(const Program& program, int argc, char** argv);

/// Throws ConfigError for the first of the words, if any: to a program that takes flags alone they say nothing.
void refuse(const std::vector<std::string>& others);

}  // namespace phalanx
