// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace phalanx {

/// A program as --help describes it.
struct Program {
  std::string purpose;  // purpose in one line; an example may follow
  std::string files;    // prefix of the paths of the files that define its flags (DEFINE_... of gflags): libraries
                        // define flags too
  std::vector<std::string> keys{};  // config paths of --set: for --lr 0.1 the error suggests optimizer.lr
};

/// A flag as written: "--set=a=b" has the name "set" and the value "a=b".
struct WrittenFlag {
  std::string name;
  std::optional<std::string> value;  // text after an equals sign
};

/// Returns nullopt for a word that is not a flag.
std::optional<WrittenFlag> as_flag(const std::string& word);

/// Sets the program's flags that are among `words`, as --name=value, --name value, --switch or --noswitch, and returns
/// the other words. --help (-h) prints the flags, --version the version, and both end the process with status 0. Throws
/// ConfigError for a flag that the program does not have, with a suggestion, and for a value that is missing or does
/// not fit.
std::vector<std::string> parse_flags(const Program& program, const std::vector<std::string>& words);

/// Parses the arguments of main(), without the first.
std::vector<std::string> parse_flags(const Program& program, int argc, char** argv);

/// Throws ConfigError for the first of the words, if any: for programs that accept only flags.
void refuse(const std::vector<std::string>& others);

}  // namespace phalanx
