// SPDX-License-Identifier: Apache-2.0
// Runs one rank of a recorded run alone: replay recording --rank 2

#include "framework/collectives/recording/replay.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/run_folder.h"
#include "framework/base/argv.h"
#include "framework/base/config/config.h"
#include "framework/base/error.h"
#include "framework/base/text.h"
#include "framework/kernels/kernels.h"
#include "launch/exit_status.h"
#include "launch/job/recording.h"
#include "launch/job/replay_rank.h"
#include "launch/program.h"
#include "launch/temporary_folder.h"
#include "tools/command/command.h"
#include "tools/command/flags.h"
#include "tools/config/saved_run.h"

namespace phalanx {
namespace {

struct Options {
  std::string folder{};
  std::int32_t rank = 0;
  std::int64_t until = 0;
  std::string against{};
  bool gdb = false;
  std::string run_dir{};
  std::vector<std::string> overrides{};
};

Options parse(const Arguments& arguments) {
  Options options;
  Flags flags(arguments, {"recording --rank 2", "recording --rank 2 --gdb"},
              "The folder is the one that framework.record of the recorded run names. Call it where that run was "
              "started, so that the paths in its config lead to the same data.");
  flags.add("recording", &options.folder, "folder of the recording; --recording may be omitted");
  flags.add("rank", &options.rank, "rank to run");
  flags.add("until", &options.until, "last step to run; 0: all that are recorded");
  flags.add_path("against", &options.against,
                 "recording of another run: tells in which operation this rank differs first");
  flags.add("gdb", &options.gdb, "run it under gdb, which must be installed");
  flags.add_path("run_dir", &options.run_dir, "folder for what the rank writes (default: a temporary one)");
  flags.add_overrides(&options.overrides, "change of the recorded config, such as train.digests=1");
  auto others = flags.parse(arguments.words);
  take_positional(others, options.folder);
  refuse(others);
  if (options.until < 0) throw ConfigError("--until: steps are numbered from 1");
  if (options.folder.empty()) throw ConfigError("no recording: " + arguments.name + " FOLDER --rank N");
  return options;
}

// Replaces this process by gdb, which runs the same command without --gdb.
[[noreturn]] void run_under_gdb(const Arguments& arguments) {
  std::vector<std::string> words{"gdb", "-q", "--args"};
  for (const auto& word : arguments.command_line()) {
    if (word != "--gdb" && word != "-gdb" && word != "--gdb=true") words.push_back(word);
  }
  ::execvp("gdb", argv_of(words).data());
  throw ConfigError(std::string("--gdb: gdb cannot be started: ") + std::strerror(errno) +
                    "; install it, or leave out --gdb");
}

// Loads the recorded config. Its values are known to be good, since a run has used them.
void load(const recording::Header& header, const std::string& origin, const std::vector<std::string>& overrides,
          ExperimentConfig& config) {
  refuse_unnamed_plugins(header.config, origin, overrides);
  config::load_text(config, header.config, origin, overrides);
  kernels::use_kernels(config.kernels);
  const std::string build = describe_build();
  if (build == header.build) return;
  std::fprintf(stderr, "Warning: recorded by %s, but this is %s: results may differ in their last bits.\n",
               header.build.c_str(), build.c_str());
}

void print(const recording::Header& header, const ReplayResult& result) {
  const std::string from = result.first_step > 0 ? " from step " + std::to_string(result.first_step + 1) : "";
  if (!result.ended.empty()) {
    std::printf("Rank %d of %d did what is recorded%s, up to the end of the recording after step %lld: %s\n",
                header.rank, header.ranks, from.c_str(), static_cast<long long>(result.last_step),
                result.ended.c_str());
    return;
  }
  if (result.stopped) {
    std::printf("Rank %d of %d did what is recorded%s up to step %lld: %lld operations\n", header.rank, header.ranks,
                from.c_str(), static_cast<long long>(result.last_step), static_cast<long long>(result.operations));
    return;
  }
  std::printf(
      "Rank %d of %d did what is recorded%s: %lld operations, and after step %lld the same parameters, bit for "
      "bit\n",
      header.rank, header.ranks, from.c_str(), static_cast<long long>(result.operations),
      static_cast<long long>(result.last_step));
}

// Prints the first difference from the recording `against` that has been found, if any. Returns true if there is one.
bool print_difference(const std::string& against, const recording::Replay& replay) {
  const std::string difference = replay.difference_from_other();
  if (difference.empty()) return false;
  std::printf("First difference from %s: %s\n", against.c_str(), difference.c_str());
  return true;
}

int run(const Arguments& arguments) {
  const Options options = parse(arguments);
  if (options.gdb) run_under_gdb(arguments);
  Job job{.started = process_start(), .saves = false, .quiet = true};
  auto recording = std::make_unique<recording::Recording>(options.folder, options.rank);
  const recording::Header header = recording->header();
  load(header, recording::file_of(options.folder, options.rank), options.overrides, job.config);
  std::optional<TemporaryFolder> temporary;
  const RunFolder folder =
      RunFolder::create(options.run_dir.empty() ? temporary.emplace().path() + "/replay" : options.run_dir);
  const auto replay = std::make_shared<recording::Replay>(std::move(recording));
  if (!options.against.empty()) {
    replay->compare_with(std::make_unique<recording::Recording>(options.against, options.rank));
  }
  try {
    print(header, replay_rank(job, replay, folder, options.until));
  } catch (const recording::ReplayDifference& difference) {
    std::fprintf(stderr, "Rank %d of %d: %s\n", header.rank, header.ranks, difference.what());
    print_difference(options.against, *replay);
    return kFailed;
  }
  if (print_difference(options.against, *replay)) return kFailed;
  if (!options.against.empty()) std::printf("No difference from %s in these operations\n", options.against.c_str());
  return kDone;
}

const bool replay_registered = register_command(
    {"replay", "runs one rank of a recorded run alone, bit for bit, under gdb if wanted", CommandGroup::kModels, run});

}  // namespace
}  // namespace phalanx
