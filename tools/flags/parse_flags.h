#pragma once

#include <string>
#include <vector>

namespace phalanx {

/// A program as --help tells of it.
struct Program {
  std::string purpose;  // what it does, in a line; an example may follow
  std::string files;  // folder of the files that define its flags (DEFINE_... of gflags): libraries bring others along
};

/// Sets the flags that are among `words`, as --name=value, --name value, --switch or --noswitch, and returns the
/// others.
/// --help prints the program's flags, --version its version, and both end the process with status 0. Throws ConfigError
/// for a flag that is not there, with the nearest of the program's own, and for a value that is missing or does not
/// fit.
std::vector<std::string> parse_flags(const Program& program, const std::vector<std::string>& words);

/// The same for main()'s words, of a program that takes flags alone: throws for anything else too.
void parse_flags_alone(const Program& program, int argc, char** argv);

/// What it throws for a word that is no flag, and stands for nothing.
void refuse_others(const std::vector<std::string>& words);

}  // namespace phalanx
