#include "tools/job/command_line.h"

#include <gflags/gflags.h>

#include <string_view>

#include "framework/base/error.h"
#include "tools/flags/parse_flags.h"

DEFINE_string(config, "", "YAML file that describes the run");
DEFINE_string(set, "", "key.path=value, in place of the file's; may be given several times");
DEFINE_string(run_dir, "", "folder for everything the run leaves (default: runs/<name>-<time>)");
DEFINE_string(resume, "",
              "go on from a checkpoint: auto (the newest of the run folder) or its path; checkpoint.resume");
DEFINE_bool(print_config, false, "print the resolved config, defaults included, and exit");
DEFINE_bool(help_config, false, "print every key a config can have, and exit");

namespace phalanx {
namespace {

// Name of a flag as written ("--set=a=b" -> "set"); empty for what is no flag.
std::string flag_name(std::string_view word) {
  if (!word.starts_with("-") || word == "-") return {};
  word.remove_prefix(word.starts_with("--") ? 2 : 1);
  return std::string(word.substr(0, word.find('=')));
}

// gflags keeps the last of several values.
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

}  // namespace

CommandLine parse_command_line(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  CommandLine line{.overrides = take_overrides(words)};
  refuse_others(parse_flags(
      {.purpose =
           "trains a model as a YAML file says\n\n  train --config configs/quickstart.yaml --set optimizer.lr=0.05",
       .files = "tools/job/"},
      words));
  line.config = FLAGS_config;
  line.run_dir = FLAGS_run_dir;
  if (!FLAGS_resume.empty()) line.overrides.push_back("checkpoint.resume=" + FLAGS_resume);
  line.print_config = FLAGS_print_config;
  line.help_config = FLAGS_help_config;
  return line;
}

}  // namespace phalanx
