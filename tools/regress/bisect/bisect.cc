// SPDX-License-Identifier: Apache-2.0
// Finds the first commit that made a metric of a config worse:
//   regress bisect configs/quickstart.yaml --metric throughput --good v0.1 --bad main
#include <chrono>
#include <cmath>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/base/printable.h"
#include "framework/base/quantile.h"
#include "framework/base/text.h"
#include "launch/exit_status.h"
#include "tools/command/flags.h"
#include "tools/history/change_points.h"
#include "tools/history/records.h"
#include "tools/regress/bisect/bisection.h"
#include "tools/regress/bisect/commits.h"
#include "tools/regress/commands.h"
#include "tools/regress/places/process.h"
#include "tools/regress/results/failure_text.h"
#include "tools/regress/results/run_metrics.h"

namespace phalanx::regress {
namespace {

namespace fs = std::filesystem;

struct BisectOptions {
  std::string config{};
  std::vector<std::string> overrides{};
  std::string metric = "throughput";
  std::string good{}, bad = "HEAD";
  std::string out = "bisect";
  std::string build = "./bazelw build //tools:train";
  std::string program = "bazel-bin/tools/train";
  std::string clean = "./bazelw clean --expunge";
  std::int64_t rounds = 5;
  double least = 0.02;
  double time_limit = 600;
};

BisectOptions parse_bisect(const Arguments& arguments) {
  BisectOptions options;
  Flags flags(arguments, {"configs/quickstart.yaml --metric throughput --good A --bad B"},
              "Every commit is built in a git worktree, with the shared cache of Bazel. Runs of the commits that are "
              "compared take turns, so that a change of the machine's speed affects all of them.");
  flags.add_path("config", &options.config, "YAML file of the run to measure; --config may be omitted");
  flags.add_overrides(&options.overrides, kOverridesHelp);
  flags.add("metric", &options.metric, "throughput, peak_memory, or a final metric such as test.accuracy");
  flags.add("good", &options.good, "commit at which the metric was as it should be");
  flags.add("bad", &options.bad, "later commit at which it is not");
  flags.add_path("out", &options.out, "folder for worktrees, logs and runs");
  flags.add("build", &options.build, "shell command that builds a commit, run in its worktree");
  flags.add("program", &options.program, "program that it builds, which trains, relative to the worktree");
  flags.add("clean", &options.clean, "shell command that removes the build, run before the worktree is removed");
  flags.add("rounds", &options.rounds, "runs of each commit; their median counts");
  flags.add("least", &options.least, "smallest difference between good and bad, as a share");
  flags.add("time_limit", &options.time_limit, "seconds that a run may take");
  auto others = flags.parse(arguments.words);
  take_positional(others, options.config);
  refuse(others);
  if (options.config.empty())
    throw ConfigError("no config: " + arguments.name + " CONFIG --good A --bad B (see --help)");
  if (!fs::is_regular_file(options.config)) throw ConfigError("there is no config " + options.config);
  if (options.good.empty()) throw ConfigError("--good is missing: a commit at which the metric was as it should be");
  if (options.rounds < 1) throw ConfigError("--rounds: must be at least 1");
  return options;
}

// Measures commits in turns.
class Measurements {
 public:
  explicit Measurements(const BisectOptions& options)
      : options_(options), metric_(history::parse_metric(options.metric)), out_(fs::absolute(options.out)) {}

  // Returns the values of each commit, in rounds that run all of them. Throws Error if a run fails.
  std::vector<std::vector<double>> take_turns(const std::vector<const BuiltCommit*>& commits) {
    std::vector<std::vector<double>> values(commits.size());
    for (std::int64_t round = 0; round < options_.rounds; ++round) {
      for (std::size_t i = 0; i < commits.size(); ++i) values[i].push_back(measure(*commits[i]));
    }
    return values;
  }

 private:
  double measure(const BuiltCommit& commit) {
    const std::string folder = out_ + "/runs/" + std::to_string(++runs_) + "-" + commit.commit().short_hash();
    std::error_code none;
    fs::remove_all(folder, none);  // of an earlier bisection
    fs::create_directories(folder, none);
    ProcessOptions process{.command = {commit.program(), "--config=" + options_.config, "--run_dir=" + folder},
                           .output = folder + "/stdout.log",
                           .errors = folder + "/stderr.log"};
    for (const auto& assignment : options_.overrides) process.command.push_back("--set=" + assignment);
    Process run(process);
    const auto status = run.wait(options_.time_limit);
    if (status != kDone && status != kExpectationFailed) {
      throw Error(commit.commit().short_hash() + ": the run " +
                  (status ? "ended with status " + std::to_string(*status) + ": " + reason_in(read_file(process.errors))
                          : format_text("had not ended after %g s", options_.time_limit)) +
                  "; see " + folder);
    }
    const double value = value_of(read_result(folder), metric_);
    if (std::isnan(value)) throw Error(commit.commit().short_hash() + ": the run has no " + options_.metric);
    return value;
  }

  const BisectOptions& options_;
  const history::MetricName metric_;
  const std::string out_;
  int runs_ = 0;
};

void print_medians(const BuiltCommit& commit, const std::vector<double>& values, const char* verdict) {
  print_text("%s  %-8s median %.6g of %zu runs  %s\n", commit.commit().short_hash().c_str(), verdict, median(values),
             values.size(), commit.commit().subject.c_str());
}

// Builds and judges one commit.
Judgement judge_one(const Commit& commit, const BuildOptions& build, const BuiltCommit& good, const BuiltCommit& bad,
                    Measurements& measurements) {
  try {
    const BuiltCommit candidate(commit, build);
    const auto values = measurements.take_turns({&good, &candidate, &bad});
    const Judgement judgement = judge_commit({.good = values[0], .bad = values[2]}, values[1]);
    print_medians(candidate, values[1], judgement == Judgement::kGood ? "good" : "bad");
    return judgement;
  } catch (const Error& error) {
    print_text("%s  unknown  %s\n", commit.short_hash().c_str(), error.what());
    return Judgement::kUnknown;
  }
}

int print_result(const std::vector<Commit>& commits, const Bisection& bisection) {
  const Commit& bad = commits[bisection.first_bad()];
  const std::size_t between = bisection.first_bad() - bisection.last_good() - 1;
  if (between == 0) {
    print_text("first bad commit: %s %s\n", bad.hash.c_str(), bad.subject.c_str());
  } else {
    print_text("first bad commit: %s %s, or one of the %zu before it, which could not be judged\n", bad.hash.c_str(),
               bad.subject.c_str(), between);
  }
  return kDone;
}

}  // namespace

int bisect(const Arguments& arguments) {
  const BisectOptions options = parse_bisect(arguments);
  const std::string repository = environment("BUILD_WORKSPACE_DIRECTORY").value_or(fs::current_path());
  const auto commits = commits_between(repository, options.good, options.bad);
  const BuildOptions build{.repository = repository,
                           .folder = fs::absolute(options.out),
                           .build = options.build,
                           .program = options.program,
                           .clean = options.clean};
  Bisection bisection(commits.size());
  print_text("%zu commits, about %d steps\n", commits.size() - 1, bisection.steps_left());
  const BuiltCommit good(commits.front(), build), bad(commits.back(), build);
  Measurements measurements(options);
  const auto values = measurements.take_turns({&good, &bad});
  print_medians(good, values[0], "good");
  print_medians(bad, values[1], "bad");
  if (!are_separate({.good = values[0], .bad = values[1]}, options.least)) {
    throw Error(options.metric + " does not differ enough between --good and --bad; try more --rounds or longer runs");
  }
  while (const auto next = bisection.next()) {
    bisection.record(*next, judge_one(commits[*next], build, good, bad, measurements));
  }
  return print_result(commits, bisection);
}

}  // namespace phalanx::regress
