// SPDX-License-Identifier: Apache-2.0
// Predicts what a training step will take, before a run: plan configs/shakespeare_gpt_tp2_dp2.yaml
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/experiment/plan_check.h"
#include "engine/plan/step_plan.h"
#include "framework/base/config/locate.h"
#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/base/text.h"
#include "framework/comm/backend.h"
#include "launch/exit_status.h"
#include "launch/job/job.h"
#include "launch/program.h"
#include "launch/temporary_folder.h"
#include "tools/command/command.h"
#include "tools/command/flags.h"
#include "tools/config/load_checked.h"
#include "tools/config/use_cpu.h"

namespace phalanx {
namespace {

struct Options {
  std::string config{};
  std::vector<std::string> overrides{};
  int rank = 0;
  bool check = false;
  std::string json{};
};

void print_bytes(const char* what, std::int64_t bytes) {
  std::printf("  %-14s %12lld  %s\n", what, static_cast<long long>(bytes), format_bytes(bytes).c_str());
}

void print_operations(const char* what, const StepPlan& plan, const OperationCounts& counts) {
  for (const auto& [kind, count] : counts) {
    const auto ranks = ranks_along(plan.shape, kind.axes);
    const double wire = wire_bytes(kind.op, ranks, count.bytes);
    std::printf("  %-9s  %-16s %3lld ranks  %-14s %5lld  %12lld  %12lld\n", what, axes_name(kind.axes).c_str(),
                static_cast<long long>(ranks), std::string(to_string(kind.op)).c_str(),
                static_cast<long long>(count.count), static_cast<long long>(count.bytes), std::llround(wire));
  }
}

void print(const StepPlan& plan, int rank) {
  std::printf("rank %d of %lld: %lld of a batch's samples, in parts of %lld; %lld parameters in the whole model\n",
              rank, static_cast<long long>(plan.shape.product()), static_cast<long long>(plan.samples),
              static_cast<long long>((plan.samples + plan.micro_batches - 1) / plan.micro_batches),
              static_cast<long long>(plan.parameters));
  print_bytes("parameters", plan.parameter_bytes);
  print_bytes("gradients", plan.gradient_bytes);
  print_bytes("optimizer", plan.optimizer_bytes);
  print_bytes("activations", plan.activation_bytes);
  std::printf("strategy %s, %lld buckets; operations of a step, bytes of their tensors, bytes that a rank sends\n",
              plan.strategy.c_str(), static_cast<long long>(plan.buckets));
  print_operations("gradients", plan, plan.gradients);
  print_operations("layers", plan, plan.layers);
  print_operations("control", plan, plan.control);
  if (plan.shape[Axis::kPipe] > 1) std::printf("pipeline bubble: %.1f %% of a step\n", 100 * plan.bubble);
  std::printf("batch, forward, backward and update: %.3f ms\n", 1e3 * plan.seconds);
}

// Writes the plan as JSON with the keys of tools:simulate.
void write_json(const StepPlan& plan, const std::string& name, const std::string& file) {
  const double parameters = static_cast<double>(plan.parameters);
  const auto whole = static_cast<double>(plan.parameter_bytes);
  const nlohmann::ordered_json json = {
      {"cluster", {{"hosts", 1}, {"ranks_per_host", 1}}},
      {"model",
       {{"name", name},
        {"parameters", parameters},
        {"seconds_per_sample", plan.seconds / static_cast<double>(plan.samples)},
        {"activation_bytes", static_cast<double>(plan.activation_bytes) / static_cast<double>(plan.samples)},
        {"optimizer_bytes", 4 * static_cast<double>(plan.optimizer_bytes) / whole}}},
      {"train", {{"samples_per_replica", plan.samples}}}};
  write_atomically(file, json.dump(2) + "\n");
}

int check(const ExperimentConfig& config, const ExperimentContext& context) {
  ExperimentContext to_the_end = context;
  to_the_end.stop_asked = [] { return false; };  // a check of a few steps is of no use
  const auto checked = check_plan(config, to_the_end);
  if (context.world->rank() != 0) return kDone;  // rank 0 reports for all
  print(checked.plan, 0);
  std::printf("links: %.1f us an operation, %.0f MB/s of a rank\n", 1e6 * checked.links.latency,
              1e-6 * checked.links.bandwidth);
  std::printf("step: predicted %.3f ms, measured %.3f ms (%+.1f %%)\n", 1e3 * checked.predicted, 1e3 * checked.measured,
              100 * (checked.predicted / checked.measured - 1));
  if (checked.differences.empty()) {
    std::printf("operations: as planned\n");
    std::fflush(stdout);
    return kDone;
  }
  std::fflush(stdout);
  throw Error("operations differ from the plan, over all ranks:\n" + checked.differences);
}

int plan(const ExperimentConfig& config, const Options& options) {
  const auto ranks = training_ranks(config);
  if (options.rank < 0 || options.rank >= ranks) {
    throw ConfigError("--rank: there is no rank " + std::to_string(options.rank) + ": launch.ranks is " +
                      std::to_string(ranks));
  }
  const bool shared = config.backend == "auto" || backend_traits(config.backend).shared == BackendTraits::Memory::kAll;
  const bool near = config.launch.hosts.empty() && !config.launch.on_several_hosts() && shared;
  // The ranks of a host share its cores. More threads than cores would only slow the measurements down.
  const int cores = at::get_num_threads();
  at::set_num_threads(config.launch.threads > 0 ? static_cast<int>(std::min<std::int64_t>(config.launch.threads, cores))
                                                : std::max(1, static_cast<int>(cores / ranks)));
  const StepPlan plan = plan_step(config, config.dataset.make(), {.rank = options.rank, .shares_memory = near});
  print(plan, options.rank);
  if (options.json.empty()) return kDone;
  if (ranks > 1) throw ConfigError("--json: describes a whole model; add --set launch.ranks=1 and a mesh of one rank");
  write_json(plan, config.name, options.json);
  return kDone;
}

Options parse(const Arguments& arguments) {
  Options options;
  Flags flags(arguments, {"configs/shakespeare_gpt_tp2_dp2.yaml", "configs/shakespeare_gpt_tp2_dp2.yaml --check"});
  flags.add("config", &options.config, "YAML file of a run; --config may be omitted");
  flags.add_overrides(&options.overrides, kOverridesHelp);
  flags.add("rank", &options.rank, "rank whose share of the model to plan");
  flags.add("check", &options.check, "also run a few steps, and compare their operations and time with the plan");
  flags.add("json", &options.json, "file to write the model to, for tools:simulate");
  auto others = flags.parse(arguments.words);
  take_positional(others, options.config);
  refuse(others);
  if (options.config.empty()) throw ConfigError("no config: " + arguments.name + " --config FILE (see --help)");
  return options;
}

int run(const Arguments& arguments) {
  Job job{.command = arguments.command_line(), .started = process_start(), .quiet = true};
  Options options = parse(arguments);
  use_cpu(options.overrides);
  job.sources = {options.config, options.overrides};
  load_checked(job.config, job.sources);
  try {
    if (!options.check) return plan(job.config, options);
  } catch (const ConfigError& error) {
    throw config::located(error, job.sources);
  }
  job.body = check;
  job.saves = false;
  const TemporaryFolder folder;
  job.run_dir = folder.path();
  return run_job(job);
}

const bool plan_registered = register_command(
    {"plan", "predicts memory, communication and time of a training step", CommandGroup::kPlanning, run});

}  // namespace
}  // namespace phalanx
