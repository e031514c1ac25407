// SPDX-License-Identifier: Apache-2.0
// The commands that are separate programs: doctor has to start where a library that phalanx needs is missing, and only
// download needs libcurl and its dependencies.
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "framework/base/argv.h"
#include "framework/base/error.h"
#include "tools/command/command.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

// Returns the path of a program, which is in the folder of this one, or where Bazel builds it: tools/NAME/NAME.
fs::path find_program(const fs::path& self, const std::string& name) {
  const fs::path folder = self.parent_path();
  for (const auto& path : {folder / name, folder.parent_path() / name / name}) {
    if (fs::is_regular_file(path)) return path;
  }
  throw ConfigError(name + " is not built; build it with ./bazelw build //tools:" + name);
}

// Becomes the program.
int execute(const Arguments& arguments) {
  const auto program = find_program(arguments.program.front(), arguments.program.back());
  std::vector<std::string> words = arguments.words;
  words.insert(words.begin(), arguments.name);
  ::execv(program.c_str(), argv_of(words).data());
  throw Error(program.string() + ": " + std::generic_category().message(errno));
}

const bool doctor_registered =
    register_command({"doctor", "prints what this machine and this build can do", CommandGroup::kMachine, execute});
const bool download_registered = register_command(
    {"download", "downloads a dataset, and continues where it was interrupted", CommandGroup::kData, execute});

}  // namespace
}  // namespace phalanx
