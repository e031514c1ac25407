// SPDX-License-Identifier: Apache-2.0
// Evaluates saved weights: eval --run runs/quickstart-20250101-120000
#include <gflags/gflags.h>

#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "engine/experiment/evaluate.h"
#include "framework/base/error.h"
#include "framework/comm/launch_environment.h"
#include "launch/exit_status.h"
#include "launch/job/job.h"
#include "launch/program.h"
#include "launch/stop_signal.h"
#include "launch/temporary_folder.h"
#include "tools/flags/load_checked.h"
#include "tools/flags/on_the_cpu.h"
#include "tools/flags/parse_flags.h"
#include "tools/flags/saved_run.h"
#include "tools/flags/take_overrides.h"

DEFINE_string(run, "", "run folder whose config.yaml, weights.safetensors and embeddings.safetensors to use");
DEFINE_string(weights, "",
              "safetensors file, in place of the run's; embeddings.safetensors must be in the same folder");
DEFINE_string(config, "", "YAML file of a run with these weights, in place of the run's");
DEFINE_string(set, "", "key.path=value, overrides the config file; may be repeated");
DEFINE_string(split, "test", "test or validation");
DEFINE_string(predictions, "", "safetensors file to write each sample's outputs and targets to");
DEFINE_string(run_dir, "", "folder for the logs of ranks (default: a temporary one)");

namespace phalanx {
namespace {

namespace fs = std::filesystem;

void print(const EvaluationResult& result, const std::string& split) {
  std::printf("%s split, %lld samples\n", split.c_str(), static_cast<long long>(result.samples));
  for (const auto& [name, value] : result.readings) std::printf("  %-20s %.6g\n", name.c_str(), value);
  std::fflush(stdout);
}

int evaluate(const RankContext& rank, const EvaluationContext& wanted) {
  EvaluationContext context = wanted;
  context.world = rank.world;
  context.device = rank.device;
  context.splits = rank.splits;
  context.stop_asked = stop_requested;
  const auto result = evaluate_weights(rank.config, context);
  if (!result) return kInterrupted;
  if (rank.world->rank() == 0) {
    if (result->unreadable) tell_skipped(*result->unreadable);
    print(*result, context.split);
  }
  return kDone;
}

int run(int argc, char** argv) {
  Job job{.command = {argv, argv + argc}, .started = process_start(), .quiet = true};
  std::vector<std::string> words(argv + 1, argv + argc);
  auto overrides = take_overrides(words);
  refuse(parse_flags({.purpose = "measures saved weights on a split, on any number of ranks\n\n"
                                 "  eval --run runs/NAME --predictions predictions.safetensors\n"
                                 "  eval --weights weights.safetensors --config configs/quickstart.yaml",
                      .files = "tools/eval/"},
                     words));
  if (FLAGS_split != "test" && FLAGS_split != "validation") {
    throw ConfigError("--split: \"" + FLAGS_split + "\" is neither test nor validation");
  }
  const SavedRun saved = find_saved_run("eval", FLAGS_run, FLAGS_weights, FLAGS_config, overrides);
  const EvaluationContext wanted{.weights = saved.weights, .split = FLAGS_split, .predictions = FLAGS_predictions};
  // These settings matter for training only, and might not suit the present ranks. Servers may be gone, and all ranks
  // evaluate.
  for (const char* one : {"checkpoint.resume=none", "determinism=run", "strategy=auto", "roles={}"}) {
    overrides.emplace_back(one);
  }
  leave_out_training_on_devices(overrides);
  job.sources = {saved.config, overrides};
  load_checked(job.config, job.sources);
  take_encoding(job.config.dataset, saved);
  job.command[0] = fs::canonical("/proc/self/exe").string();
  job.body = [&wanted](const RankContext& rank) { return evaluate(rank, wanted); };
  job.saves = false;
  std::optional<TemporaryFolder> logs;
  job.run_dir = FLAGS_run_dir;
  if (job.run_dir.empty()) {
    const auto launched = detect_launch_environment();
    if (!job.config.launch.hosts.empty() || (launched && !launched->rank_info.one_host())) {
      throw ConfigError("--run_dir: name a folder that all hosts share, for the logs of their ranks");
    }
    job.run_dir = logs.emplace().path();
  }
  return run_job(job);
}

}  // namespace
}  // namespace phalanx

int main(int argc, char** argv) {
  return phalanx::run_main([&] { return phalanx::run(argc, argv); });
}
