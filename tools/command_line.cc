// SPDX-License-Identifier: Apache-2.0
#include "tools/command_line.h"

#include <charconv>
#include <optional>
#include <system_error>
#include <utility>

#include "framework/base/error.h"
#include "tools/command/flags.h"

namespace phalanx {
namespace {

constexpr const char* kHelpConfig = "help_config";

// Removes the section from "--help_config=SECTION" and returns it: a switch cannot have such a value.
std::string take_section(std::vector<std::string>& words) {
  for (auto& word : words) {
    const auto flag = as_flag(word);
    if (!flag || flag->name != kHelpConfig || !flag->value || flag->value == "true" || flag->value == "false") continue;
    word = std::string("--") + kHelpConfig;
    return *flag->value;
  }
  return "";
}

// Returns nothing for a flag that was not given.
std::optional<int> to_count(const std::string& flag, const std::string& text) {
  if (text.empty()) return std::nullopt;
  int number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc() && rest == end && number >= 0) return number;
  throw ConfigError("--" + flag + ": expected a whole number, got \"" + text + "\"");
}

// A host that joins gets everything else from the job.
void check_join(CommandLine& line, const std::string& ranks) {
  if (line.join.empty() && !ranks.empty()) throw ConfigError("--ranks goes with --join; set launch.ranks for a job");
  if (line.join.empty()) return;
  line.join_ranks = to_count("ranks", ranks).value_or(1);
  if (line.join_ranks == 0) throw ConfigError("--ranks: a host joins with one rank at least");
  const bool more = !line.config.empty() || !line.overrides.empty() || !line.run_dir.empty() ||
                    !line.init.url.empty() || line.print_config;
  if (more) throw ConfigError("--join takes no other flag than --ranks: the job has its config and its run folder");
}

}  // namespace

CommandLine parse_command_line(const Arguments& arguments, const std::vector<std::string>& keys) {
  CommandLine line;
  std::string resume, rank, world_size, ranks;
  Flags flags(arguments, {"configs/quickstart.yaml optimizer.lr=0.05",
                          "--config configs/quickstart.yaml --set optimizer.lr=0.05"});
  flags.add_path("config", &line.config, "YAML file that describes the run; --config may be omitted");
  flags.add_overrides(&line.overrides, kOverridesHelp, keys);
  flags.add_path("run_dir", &line.run_dir, "folder for all output of the run (default: runs/<name>-<time>)");
  flags.add_path("resume", &resume,
                 "resume from a checkpoint: auto (the newest of the run folder) or its path; sets checkpoint.resume");
  flags.add_path(
      "init_method", &line.init.url,
      "where this rank meets the others: env://, tcp://HOST:PORT or file:///PATH (default: where its launcher "
      "says)");
  flags.add_path("rank", &rank, "number of this rank, from 0, if no launcher gives it one; needs --world_size");
  flags.add_path("world_size", &world_size, "number of ranks, if no launcher sets it; needs --rank");
  flags.add_path("join", &line.join,
                 "join a running job at this address, which it prints if faults.max_ranks lets hosts join");
  flags.add_path("ranks", &ranks, "with --join: ranks to start on this host, if the job has room (default: 1)");
  flags.add("print_config", &line.print_config, "print the resolved config, defaults included, and exit");
  flags.add(kHelpConfig, &line.help_config,
            "print every key that a config can have, or the keys of one SECTION (--help_config optimizer.sgd), and "
            "exit");
  auto words = arguments.words;
  line.help_section = take_section(words);
  auto others = flags.parse(words);
  line.init.rank = to_count("rank", rank);
  line.init.world_size = to_count("world_size", world_size);
  if (!resume.empty()) line.overrides.push_back("checkpoint.resume=" + resume);
  if (!line.help_config) {
    take_positional(others, line.config);
  } else if (line.help_section.empty() && others.size() == 1) {
    line.help_section = std::exchange(others, {})[0];
  }
  refuse(others);
  check_join(line, ranks);
  return line;
}

}  // namespace phalanx
