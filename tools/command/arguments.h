// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace phalanx {

/// The command line of a command.
struct Arguments {
  std::string name;                    // the command as the user called it: "phalanx train", or "train"
  std::string purpose;                 // one line for --help
  std::vector<std::string> words{};    // the words after the name
  std::vector<std::string> program{};  // starts the same command, in any folder: the absolute path of the executable,
                                       // and the command's name if the executable has several

  /// Returns the whole command line, for processes that do the same.
  std::vector<std::string> command_line() const {
    std::vector<std::string> all = program;
    all.insert(all.end(), words.begin(), words.end());
    return all;
  }
};

}  // namespace phalanx
