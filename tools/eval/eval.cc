// SPDX-License-Identifier: Apache-2.0
// Evaluates saved weights: eval runs/quickstart-20250101-120000

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "engine/experiment/evaluate.h"
#include "framework/base/error.h"
#include "framework/comm/launch/launch_environment.h"
#include "launch/exit_status.h"
#include "launch/job/job.h"
#include "launch/program.h"
#include "launch/temporary_folder.h"
#include "tools/command/command.h"
#include "tools/command/flags.h"
#include "tools/config/load_checked.h"
#include "tools/config/saved_run.h"
#include "tools/config/use_cpu.h"

namespace phalanx {
namespace {

void print(const EvaluationResult& result, const std::string& split) {
  std::printf("%s split, %lld samples\n", split.c_str(), static_cast<long long>(result.samples));
  for (const auto& [name, value] : result.metrics) std::printf("  %-20s %.6g\n", name.c_str(), value);
  std::fflush(stdout);
}

int evaluate(const ExperimentConfig& config, const ExperimentContext& context, const EvaluationOptions& wanted) {
  const auto result = evaluate_weights(config, context, wanted);
  if (!result) return kInterrupted;
  if (context.world->rank() == 0) {
    if (result->unreadable) warn_of_skipped_samples(*result->unreadable);
    print(*result, wanted.split);
  }
  return kDone;
}

struct Options {
  SavedRunFlags saved{};
  std::string split = "test";
  std::string predictions{};
  std::string run_dir{};
};

Options parse(const Arguments& arguments) {
  Options options;
  Flags flags(arguments, {"runs/NAME --predictions predictions.safetensors",
                          "--weights weights.safetensors --config configs/quickstart.yaml"});
  options.saved.add_to(flags);
  flags.add("split", &options.split, "test or validation");
  flags.add("predictions", &options.predictions, "safetensors file to write each sample's outputs and targets to");
  flags.add("run_dir", &options.run_dir, "folder for the logs of ranks (default: a temporary one)");
  auto others = flags.parse(arguments.words);
  take_positional(others, options.saved.run);
  refuse(others);
  if (options.split != "test" && options.split != "validation") {
    throw ConfigError("--split: \"" + options.split + "\" is neither test nor validation");
  }
  return options;
}

int run(const Arguments& arguments) {
  Job job{.command = arguments.command_line(), .started = process_start(), .quiet = true};
  Options options = parse(arguments);
  auto& overrides = options.saved.overrides;
  const SavedRun saved = find_saved_run(arguments.name, options.saved);
  const EvaluationOptions wanted{.weights = saved.weights, .split = options.split, .predictions = options.predictions};
  // These settings matter for training only, and might not suit the present ranks. Servers may be gone, and all ranks
  // evaluate.
  for (const char* one : {"checkpoint.resume=none", "determinism=run", "strategy=auto", "roles={}"}) {
    overrides.emplace_back(one);
  }
  disable_device_options(overrides);
  job.sources = {saved.config, overrides};
  load_checked(job.config, job.sources);
  take_encoding(job.config.dataset, saved);
  job.body = [&wanted](const ExperimentConfig& config, const ExperimentContext& context) {
    return evaluate(config, context, wanted);
  };
  job.saves = false;
  std::optional<TemporaryFolder> logs;
  job.run_dir = options.run_dir;
  if (job.run_dir.empty()) {
    const auto launched = detect_launch_environment();
    const auto& launch = job.config.launch;
    if (!launch.hosts.empty() || launch.on_several_hosts() || (launched && !launched->rank_info.one_host())) {
      throw ConfigError("--run_dir: name a folder that all hosts share, for the logs of their ranks");
    }
    job.run_dir = logs.emplace().path();
  }
  return run_job(job);
}

const bool eval_registered =
    register_command({"eval", "measures saved weights on a split, on any number of ranks", CommandGroup::kModels, run});

}  // namespace
}  // namespace phalanx
