// SPDX-License-Identifier: Apache-2.0
// Predicts what a training step will take, before a run: plan --config configs/shakespeare_gpt_tp2_dp2.yaml
#include <ATen/Parallel.h>
#include <gflags/gflags.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/experiment/plan_check.h"
#include "engine/experiment/step_plan.h"
#include "framework/base/config/locate.h"
#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/base/text.h"
#include "framework/comm/backend.h"
#include "launch/exit_status.h"
#include "launch/job/job.h"
#include "launch/program.h"
#include "launch/temporary_folder.h"
#include "tools/flags/load_checked.h"
#include "tools/flags/on_the_cpu.h"
#include "tools/flags/parse_flags.h"
#include "tools/flags/take_overrides.h"

DEFINE_string(config, "", "YAML file of a run");
DEFINE_string(set, "", "key.path=value, overrides the config file; may be repeated");
DEFINE_int32(rank, 0, "rank whose share of the model to plan");
DEFINE_bool(check, false, "also run a few steps, and compare their operations and time with the plan");
DEFINE_string(json, "", "file to write the model to, for tools:simulate");

namespace phalanx {
namespace {

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
void write_json(const StepPlan& plan, const std::string& name) {
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
  write_atomically(FLAGS_json, json.dump(2) + "\n");
}

int check(const RankContext& rank) {
  const auto checked = check_plan(
      rank.config, {.world = rank.world, .splits = rank.splits, .folder = rank.folder, .servers = rank.servers});
  if (rank.world->rank() != 0) return kDone;  // rank 0 reports for all
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

int plan(const ExperimentConfig& config) {
  const auto ranks = training_ranks(config);
  if (FLAGS_rank < 0 || FLAGS_rank >= ranks) {
    throw ConfigError("--rank: there is no rank " + std::to_string(FLAGS_rank) + ": launch.ranks is " +
                      std::to_string(ranks));
  }
  const bool shared = config.backend == "auto" || backend_traits(config.backend).shared == BackendTraits::Memory::kAll;
  const bool near = config.launch.hosts.empty() && shared;
  // The ranks of a host share its cores. More threads than cores would only slow the measurements down.
  const int cores = at::get_num_threads();
  at::set_num_threads(config.launch.threads > 0 ? static_cast<int>(std::min<std::int64_t>(config.launch.threads, cores))
                                                : std::max(1, static_cast<int>(cores / ranks)));
  const StepPlan plan = plan_step(config, config.dataset.make(), {.rank = FLAGS_rank, .shares_memory = near});
  print(plan, FLAGS_rank);
  if (FLAGS_json.empty()) return kDone;
  if (ranks > 1) throw ConfigError("--json: describes a whole model; add --set launch.ranks=1 and a mesh of one rank");
  write_json(plan, config.name);
  return kDone;
}

int run(int argc, char** argv) {
  Job job{.command = {argv, argv + argc}, .started = process_start(), .quiet = true};
  std::vector<std::string> words(argv + 1, argv + argc);
  auto overrides = take_overrides(words);
  refuse(parse_flags({.purpose = "predicts memory, communication and time of a training step\n\n"
                                 "  plan --config configs/shakespeare_gpt_tp2_dp2.yaml\n"
                                 "  plan --config configs/shakespeare_gpt_tp2_dp2.yaml --check",
                      .files = "tools/plan/"},
                     words));
  if (FLAGS_config.empty()) throw ConfigError("no config: plan --config FILE (see --help)");
  stay_on_the_cpu(overrides);
  job.sources = {FLAGS_config, overrides};
  load_checked(job.config, job.sources);
  try {
    if (!FLAGS_check) return plan(job.config);
  } catch (const ConfigError& error) {
    throw config::located(error, job.sources);
  }
  job.command[0] = std::filesystem::canonical("/proc/self/exe").string();
  job.body = check;
  job.saves = false;
  const TemporaryFolder folder;
  job.run_dir = folder.path();
  return run_job(job);
}

}  // namespace
}  // namespace phalanx

int main(int argc, char** argv) {
  return phalanx::run_main([&] { return phalanx::run(argc, argv); });
}
