// SPDX-License-Identifier: Apache-2.0
#include "tools/command_line.h"

#include <gflags/gflags.h>

#include <algorithm>
#include <utility>

#include "framework/base/error.h"
#include "tools/flags/parse_flags.h"
#include "tools/flags/take_overrides.h"

DEFINE_string(config, "", "YAML file that describes the run");
DEFINE_string(set, "", "key.path=value, overrides the config file; may be repeated");
DEFINE_string(run_dir, "", "folder for all output of the run (default: runs/<name>-<time>)");
DEFINE_string(resume, "",
              "resume from a checkpoint: auto (the newest of the run folder) or its path; sets checkpoint.resume");
DEFINE_bool(print_config, false, "print the resolved config, defaults included, and exit");
DEFINE_bool(
    help_config, false,
    "print every key that a config can have, or the keys of one SECTION (--help_config optimizer.sgd), and exit");

namespace phalanx {
namespace {

// Removes the section from "--help_config=SECTION" and returns it: a switch cannot have such a value.
std::string take_section(std::vector<std::string>& words) {
  for (auto& word : words) {
    const auto flag = as_flag(word);
    if (!flag || flag->name != "help_config" || !flag->value || flag->value == "true" || flag->value == "false")
      continue;
    word = "--help_config";
    return *flag->value;
  }
  return "";
}

// Refuses a flag with an empty value, such as --run_dir "$FOLDER" with FOLDER unset.
void refuse_empty(const char* flag) {
  const auto info = google::GetCommandLineFlagInfoOrDie(flag);
  if (info.is_default || !info.current_value.empty()) return;
  throw ConfigError(std::string("--") + flag + ": is empty; give a path, or leave the flag out");
}

[[noreturn]] void refuse_file(const std::string& word) {
  throw ConfigError("unexpected argument \"" + word + "\", did you mean --config " + word + "? See --help");
}

}  // namespace

CommandLine parse_command_line(int argc, char** argv, const std::vector<std::string>& keys) {
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  CommandLine line{.overrides = take_overrides(words)};
  line.help_section = take_section(words);
  auto others = parse_flags({.purpose = "trains a model as described in a YAML file\n\n  train --config "
                                        "configs/quickstart.yaml --set optimizer.lr=0.05",
                             .files = "tools/command_line.",
                             .keys = keys},
                            words);
  for (const char* flag : {"config", "run_dir", "resume"}) refuse_empty(flag);
  line.config = FLAGS_config;
  line.run_dir = FLAGS_run_dir;
  if (!FLAGS_resume.empty()) line.overrides.push_back("checkpoint.resume=" + FLAGS_resume);
  line.print_config = FLAGS_print_config;
  line.help_config = FLAGS_help_config;
  if (line.help_config && line.help_section.empty() && others.size() == 1)
    line.help_section = std::exchange(others, {})[0];
  if (!others.empty() && line.config.empty() && others[0].ends_with(".yaml")) refuse_file(others[0]);
  refuse(others);
  return line;
}

}  // namespace phalanx
