#include "tools/job/command_line.h"

#include <gflags/gflags.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "framework/base/error.h"
#include "framework/base/text.h"
#include "framework/base/version.h"

DEFINE_string(config, "", "YAML file that describes the run");
DEFINE_string(set, "", "key.path=value, in place of the file's; may be given several times");
DEFINE_string(run_dir, "", "folder for everything the run leaves (default: runs/<name>-<time>)");
DEFINE_string(resume, "",
              "go on from a checkpoint: auto (the newest of the run folder) or its path; checkpoint.resume");
DEFINE_bool(print_config, false, "print the resolved config, defaults included, and exit");
DEFINE_bool(help_config, false, "print every key a config can have, and exit");

namespace phalanx {
namespace {

const std::vector<std::string> kFlags{"config",       "set",         "run_dir", "resume",
                                      "print_config", "help_config", "help",    "version"};

// Name of a flag as written ("--set=a=b" -> "set"); empty for what is no flag.
std::string flag_name(std::string_view word) {
  if (!word.starts_with("-") || word == "-") return {};
  word.remove_prefix(word.starts_with("--") ? 2 : 1);
  return std::string(word.substr(0, word.find('=')));
}

// gflags keeps the last of several values and ends the process for a flag that it does not know: both are settled here.
std::vector<std::string> take_overrides(std::vector<std::string>& words) {
  std::vector<std::string> overrides, rest;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string name = flag_name(words[i]);
    if (name != "set") {
      rest.push_back(words[i]);
      continue;
    }
    const auto equals = words[i].find('=');
    if (equals == std::string::npos && i + 1 == words.size()) throw ConfigError("--set needs key=value after it");
    overrides.push_back(equals == std::string::npos ? words[++i] : words[i].substr(equals + 1));
  }
  words = rest;
  return overrides;
}

bool is_bool(const std::string& flag) {
  google::CommandLineFlagInfo info;
  return google::GetCommandLineFlagInfo(flag.c_str(), &info) && info.type == "bool";
}

// For all of these gflags would end the process with the status of a failed training.
void refuse_unknown(const std::vector<std::string>& words) {
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string name = flag_name(words[i]);
    if (name.empty()) throw ConfigError("unexpected argument \"" + words[i] + "\"; see --help");
    const auto equals = words[i].find('=');
    const std::string value = equals == std::string::npos ? "" : words[i].substr(equals + 1);
    if (is_bool(name)) {
      if (equals == std::string::npos || value == "true" || value == "false") continue;
      throw ConfigError(words[i] + ": expected true or false");
    }
    if (name.starts_with("no") && is_bool(name.substr(2)) && equals == std::string::npos) continue;
    google::CommandLineFlagInfo info;
    if (!google::GetCommandLineFlagInfo(name.c_str(), &info)) {
      const std::string near = nearest(name, kFlags);
      throw ConfigError("unknown flag \"" + words[i] + "\"" + (near.empty() ? "" : ", did you mean --" + near + "?") +
                        " See --help");
    }
    if (equals == std::string::npos && ++i == words.size()) throw ConfigError("--" + name + " needs a value after it");
  }
}

}  // namespace

CommandLine parse_command_line(int argc, char** argv) {
  std::vector<std::string> words(argv, argv + argc);
  CommandLine line{.overrides = take_overrides(words)};
  refuse_unknown(words);
  std::vector<char*> pointers;
  for (auto& word : words) pointers.push_back(word.data());
  int count = static_cast<int>(pointers.size());
  char** values = pointers.data();
  google::SetUsageMessage(
      "trains a model as a YAML file says\n\n  train --config configs/quickstart.yaml --set optimizer.lr=0.05");
  google::SetVersionString(kVersion);
  if (std::ranges::any_of(words, [](const auto& word) { return flag_name(word) == "help"; })) {
    google::ShowUsageWithFlagsRestrict(values[0], "tools/job/");  // libraries bring flags of their own
    std::exit(0);
  }
  google::ParseCommandLineFlags(&count, &values, /*remove_flags=*/true);
  line.config = FLAGS_config;
  line.run_dir = FLAGS_run_dir;
  if (!FLAGS_resume.empty()) line.overrides.push_back("checkpoint.resume=" + FLAGS_resume);
  line.print_config = FLAGS_print_config;
  line.help_config = FLAGS_help_config;
  return line;
}

}  // namespace phalanx
