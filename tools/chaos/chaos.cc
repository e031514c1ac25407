// SPDX-License-Identifier: Apache-2.0
// Runs a config many times, each time with a fault at a random moment, and checks that the run survives it.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "framework/base/console.h"
#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/base/text.h"
#include "framework/comm/backend.h"
#include "launch/exit_status.h"
#include "launch/job/launch_method.h"
#include "launch/temporary_folder.h"
#include "tools/chaos/mounts.h"
#include "tools/chaos/row.h"
#include "tools/chaos/subject.h"
#include "tools/chaos/trial.h"
#include "tools/command/command.h"
#include "tools/command/flags.h"
#include "tools/config/load_checked.h"

namespace phalanx::chaos {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRate = "1gbit";  // of the virtual hosts

constexpr const char* kNotes =
    "First runs the config twice without a fault. Then each run gets one fault, at a step, in a rank and at a\n"
    "point of the step that follow from the seed. A run that ends because of it is resumed. With\n"
    "faults.on_lost_rank=shrink, it has to go on without a rank that is lost; with replace, a newcomer has to take\n"
    "its place before the run ends, so ranks wait for it near the end. A run passes if it does not hang, its exit\n"
    "status and its messages are right, no process and no file is left, and its final weights are those of the\n"
    "undisturbed runs: bit for bit, or, if these differ from each other or from those of fewer ranks, with a loss in\n"
    "their band.\n"
    "Faults that the config or this machine does not permit are skipped, with the reason. Exit status: 0 if all runs\n"
    "pass, 1 if one does not.";

struct Options {
  std::string config{};
  std::vector<std::string> overrides{};
  std::int32_t runs = 50;
  std::uint64_t seed = 1;
  std::string faults{};
  double timeout = 10;
  std::string json{};
  std::string out{};
  bool list = false;
};

Options parse(const Arguments& arguments) {
  Options options;
  Flags flags(arguments,
              {"config.yaml --set checkpoint.every_steps=10 --runs 50 --seed 1 --json rows.json",
               "config.yaml --faults kill,stop --runs 6", "--list"},
              kNotes);
  flags.add_path("config", &options.config, "YAML file of the run; may also be given without --config");
  flags.add_overrides(&options.overrides, kOverridesHelp);
  flags.add("runs", &options.runs, "number of runs with a fault");
  flags.add("seed", &options.seed, "the same seed draws the same faults at the same moments");
  flags.add("faults", &options.faults,
            "draw from these only, separated by commas; empty: from all but flip_parameter, flip_optimizer and "
            "flip_buffer, which need copies of these on the "
            "ranks (strategy=all_reduce)");
  flags.add("timeout", &options.timeout,
            "framework.timeout of the runs, in seconds: how soon a silent rank is noticed");
  flags.add_path("json", &options.json, "file for the results");
  flags.add_path("out", &options.out, "folder that keeps the run folders; without it, they are removed");
  flags.add("list", &options.list, "list the faults and exit");
  auto words = flags.parse(arguments.words);
  take_positional(words, options.config);
  refuse(words);
  if (options.runs < 1) throw ConfigError("--runs must be at least 1");
  if (options.timeout <= 0) throw ConfigError("--timeout must be above 0");
  if (options.config.empty() && !options.list) throw ConfigError("no config: name a file (see --help)");
  return options;
}

std::vector<const Fault*> wanted_faults(const std::string& names) {
  std::vector<const Fault*> wanted;
  if (names.empty()) {
    for (const auto& fault : faults()) {
      if (!fault.needs_tensors) wanted.push_back(&fault);
    }
  }
  for (std::size_t begin = 0; begin < names.size();) {
    const std::size_t end = std::min(names.find(',', begin), names.size());
    wanted.push_back(&fault_named(names.substr(begin, end - begin)));
    begin = end + 1;
  }
  return wanted;
}

int list_faults() {
  std::string text;
  for (const auto& fault : faults()) {
    const char* expected = fault.expected == Expected::kGoesOn ? "goes on"
                           : fault.expected == Expected::kEnds ? "ends, and resumes"
                                                               : "is refused";
    text += format_text("%-22s the run %s\n", fault.name.c_str(), expected);
  }
  std::fputs(text.c_str(), stdout);
  return kDone;
}

// Makes runs that go on without lost ranks comparable with those that do not, since some faults need the latter, and
// lets a rank that is stopped count as lost before the others have waited for too long.
void prepare_shrinking(Options& options, const ExperimentConfig& config) {
  if (!config.faults.shrinks()) return;
  if (config.strategy.selected() == "auto") options.overrides.emplace_back("strategy=all_reduce");
  options.overrides.push_back(
      format_text("faults.lost_after=%g", std::min(config.faults.lost_after, options.timeout / 2)));
}

// Returns the settings of all runs. What is expected of times does not hold under faults.
std::vector<std::string> settings_of(const Options& options) {
  auto settings = options.overrides;
  settings.push_back(format_text("framework.timeout=%g", options.timeout));
  for (const char* own :
       {"expect={}", "checkpoint.resume=none", "checkpoint.final_weights=true", "watch.on_end=\"\""}) {
    settings.emplace_back(own);
  }
  return settings;
}

std::vector<std::string> arguments_of(const Options& options) {
  std::vector<std::string> words{"--config=" + fs::absolute(options.config).string()};
  for (const auto& setting : settings_of(options)) words.push_back("--set=" + setting);
  return words;
}

void check(const ExperimentConfig& config) {
  if (config.checkpoint.every_steps == 0) {
    throw ConfigError(
        "chaos needs runs that save checkpoints: set checkpoint.every_steps, for example --set "
        "checkpoint.every_steps=10");
  }
  if (!config.launch.hosts.empty()) throw ConfigError("chaos tests runs on one machine, but launch.hosts is set");
  if (config.launch.with == "srun") throw ConfigError("chaos tests runs on one machine, but launch.with is srun");
}

// Returns why the ranks of a config cannot run on two hosts, or an empty string.
std::string why_no_hosts(const ExperimentConfig& config) {
  if (config.launch.ranks % 2 != 0) return "launch.ranks is odd, so two hosts cannot share the ranks";
  const bool over_network = config.backend == "auto" || config.backend == "gloo" || config.backend == "hybrid";
  return over_network ? "" : "the ranks of backend " + config.backend + " are on one host, or need mpirun";
}

std::unique_ptr<bench_train::Hosts> make_hosts(std::string& missing) {
  if (!missing.empty()) return nullptr;
  try {
    return std::make_unique<bench_train::Hosts>(kRate);
  } catch (const Error& error) {
    missing = error.what();
    return nullptr;
  }
}

// The machine and the runs, as far as trials share them.
struct Setting {
  Launching local, on_hosts;
  std::string folder;
  std::optional<Reference> reference{}, reference_on_hosts{};

  Row run(const Trial& trial) {
    const std::string own = folder + format_text("/run%03d-", trial.number) + trial.fault->name;
    const bool hosts = trial.fault->needs_hosts;
    if (hosts && !reference_on_hosts) reference_on_hosts = measure_reference(on_hosts, folder + "/hosts");
    Row row = run_trial(trial, hosts ? on_hosts : local, hosts ? *reference_on_hosts : *reference, own);
    std::error_code kept_if_it_cannot_be_removed;
    if (row.good()) fs::remove_all(own + "/tmp", kept_if_it_cannot_be_removed);
    return row;
  }
};

void show(const std::string& text) { standard_output().write(text); }

int run_trials(const Options& options, const ExperimentConfig& config, Setting& setting, const std::string& no_mounts,
               const std::string& no_hosts) {
  const Subject subject{.ranks = static_cast<int>(config.launch.ranks),
                        .threads = setting.local.threads,
                        .replaces = setting.local.replaces,
                        .steps = setting.reference->steps,
                        .checkpoint_every = config.checkpoint.every_steps,
                        .keep_last = config.checkpoint.keep_last,
                        .no_mounts = no_mounts,
                        .no_hosts = no_hosts};
  Findings findings{
      .config = options.config, .seed = options.seed, .steps = subject.steps, .bitwise = setting.reference->bitwise};
  std::vector<const Fault*> possible;
  for (const Fault* fault : wanted_faults(options.faults)) {
    const std::string why = why_skipped(*fault, subject);
    why.empty() ? possible.push_back(fault) : findings.skipped.push_back({fault->name, why});
  }
  if (possible.empty()) throw ConfigError("none of these faults is possible here:\n" + to_table(findings));
  for (const Trial& trial : draw(possible, options.runs, options.seed, subject)) {
    findings.rows.push_back(setting.run(trial));
    show(to_line(findings.rows.back(), options.runs) + "\n");
  }
  show("\n" + to_table(findings));
  if (!options.json.empty()) write_atomically(options.json, to_json(findings));
  const auto bad = std::ranges::count_if(findings.rows, [](const Row& row) { return !row.good(); });
  show(format_text("%lld of %d runs failed\n", static_cast<long long>(bad), options.runs));
  return bad == 0 ? kDone : kFailed;
}

int run(const Arguments& arguments) {
  Options options = parse(arguments);
  if (options.list) return list_faults();
  const bool wants_hosts = std::ranges::any_of(wanted_faults(options.faults), &Fault::needs_hosts);
  ExperimentConfig config;
  load_checked(config, {options.config, settings_of(options)});
  check(config);
  prepare_shrinking(options, config);
  const std::string no_mounts = enter_own_mounts();
  std::string no_hosts = why_no_hosts(config);
  std::optional<TemporaryFolder> temporary;
  if (options.out.empty()) temporary.emplace();
  const std::string folder = temporary ? temporary->path() : fs::absolute(options.out).string();
  const auto hosts = wants_hosts ? make_hosts(no_hosts) : nullptr;
  Setting setting{.local = {.train = {arguments.program.front(), "train"},
                            .arguments = arguments_of(options),
                            .ranks = static_cast<int>(config.launch.ranks),
                            .timeout = options.timeout,
                            .threads = choose_launch_method(config) == LaunchMethod::kThreads,
                            .shrinks = config.faults.shrinks(),
                            .replaces = config.faults.replaces(),
                            .same_on_fewer_ranks = config.determinism == "world_size_invariant"},
                  .on_hosts = {},
                  .folder = folder};
  setting.on_hosts = setting.local;
  setting.on_hosts.hosts = hosts.get();
  show("Runs the config twice without a fault\n");
  setting.reference = measure_reference(setting.local, folder);
  show(format_text("%lld steps in %.1f s; the two are %s\n", static_cast<long long>(setting.reference->steps),
                   setting.reference->seconds,
                   setting.reference->bitwise ? "bitwise equal" : "not bitwise equal, so losses are compared"));
  return run_trials(options, config, setting, no_mounts, no_hosts);
}

const bool chaos_registered = register_command(
    {"chaos", "breaks runs of a config in many ways and checks that they survive", CommandGroup::kNightly, run});

}  // namespace
}  // namespace phalanx::chaos
