// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/text.h"
#include "tools/bench/flag_words.h"
#include "tools/bench_train/options.h"
#include "tools/bench_train/system.h"
#include "tools/bench_train/workload.h"
#include "tools/command/flags.h"

namespace phalanx::bench_train {
namespace {

template <class Named>
std::vector<std::string> names_of(const std::vector<Named>& all) {
  std::vector<std::string> names;
  for (const auto& one : all) names.push_back(one.name);
  return names;
}

// Replaces `zoo` by the workloads of all models.
std::vector<std::string> with_zoo(const std::vector<std::string>& names) {
  std::vector<std::string> all;
  for (const auto& name : names) {
    if (name != "zoo") {
      all.push_back(name);
      continue;
    }
    for (const auto& workload : workloads()) {
      if (workload.of_zoo) all.push_back(workload.name);
    }
  }
  return all;
}

void check(const System& system, const Options& options) {
  if (system.one_process && options.hosts != 1) {
    throw ConfigError(system.name + " is one process, which cannot run on two hosts; remove it, or use --hosts 1");
  }
  if (system.by_mpirun && options.hosts != 1) {
    throw ConfigError(system.name + " is started by one mpirun on this host; remove it, or use --hosts 1");
  }
  if (std::ranges::any_of(options.workloads, [&](const auto& name) { return applies(system, find_workload(name)); })) {
    return;
  }
  std::vector<std::string> fit;
  for (const auto& workload : workloads()) {
    if (applies(system, workload) && !workload.of_zoo) fit.push_back(workload.name);
  }
  throw ConfigError(system.name + " cannot train any workload of --workload; it can train " + join(fit, ", "));
}

void check(const Options& options) {
  if (options.systems.empty()) throw ConfigError("--systems and --against are both empty");
  if (options.ranks < 1 || options.rounds < 1) throw ConfigError("--ranks and --rounds must be at least 1");
  if (!(options.seconds > 0)) throw ConfigError("--seconds must be more than 0");
  if (!(options.until_loss >= 0)) throw ConfigError("--until_loss must be at least 0");
  if (options.hosts != 1 && options.hosts != 2) throw ConfigError("--hosts must be 1 or 2");
  if (options.ranks % options.hosts != 0) throw ConfigError("--ranks must be a multiple of --hosts");
  if (!options.dataset.empty() && options.workloads.size() > 1) {
    throw ConfigError("--dataset is for one workload, but --workload names several");
  }
  if (!options.python.empty() && !options.uses(Framework::kTorch))
    throw ConfigError("--python is for ddp and its variants; add --against ddp");
  if (!options.jax_python.empty() && !options.uses(Framework::kJax))
    throw ConfigError("--jax_python is for jax; add --against jax");
  for (const auto& name : options.systems) {
    if (const auto& system = find_system(name); system.framework != Framework::kPhalanx) check(system, options);
  }
  for (const auto& name : options.workloads) {
    if (options.dataset.empty() || !find_workload(name).of_zoo) continue;
    throw ConfigError("--dataset cannot be used with workload " + name + ", whose samples are generated; remove it");
  }
}

}  // namespace

Options parse_options(const Arguments& arguments) {
  Options options{.program = arguments.program};
  std::string workload = "mlp,lenet,char_lm,resnet18", against, link = "1gbit";
  std::string chosen = "phalanx,phalanx_defaults,phalanx_channels_last,no_communication";
  Flags flags(arguments, {"--workload mlp,lenet --against ddp --ranks 2"});
  flags.add("workload", &workload,
            "workloads to train: mlp, lenet, char_lm, gpt, lstm, resnet18, zoo (every model of the zoo, small) or "
            "zoo_MODEL");
  flags.add("systems", &chosen,
            "systems to train with: phalanx and its variants, no_communication, ddp and its variants, torch_process "
            "(one process with all cores), jax (the same with JAX; mlp, lenet, char_lm and gpt), and loops in C++ "
            "(mlp, lenet and char_lm): cpp_phalanx, cpp_reducer, cpp_mpi, cpp_no_communication and their variants");
  flags.add("against", &against, "systems to compare with, such as ddp; the first is the baseline");
  flags.add("ranks", &options.ranks, "ranks of each system, with one thread each");
  flags.add("rounds", &options.rounds, "turns of each system");
  flags.add("seconds", &options.seconds, "approximate time of a turn");
  flags.add("until_loss", &options.until_loss,
            "train until the loss of every system is below this, at most for --rounds");
  flags.add("dataset", &options.dataset,
            "a dataset as in a config, such as {name: cifar10, root: DIR}; empty: generated samples");
  flags.add("hosts", &options.hosts, "1, or 2: network namespaces connected by a link, which needs root");
  flags.add("link", &link, "rate of the link between two hosts, in the notation of tc");
  flags.add("python", &options.python,
            "for ddp and torch_process: interpreter with PyTorch; empty: one is installed once, with pip");
  flags.add("jax_python", &options.jax_python, "for jax: interpreter with JAX; empty: one is installed once, with pip");
  flags.add("json", &options.json, "JSON file for the rows");
  flags.add("markdown", &options.markdown, "print the table as Markdown");
  refuse(flags.parse(arguments.words));
  auto known = names_of(workloads());
  known.emplace_back("zoo");
  options.workloads = with_zoo(bench::choose("workload", workload, known));
  options.systems = bench::choose_any("systems", chosen, names_of(systems()));
  if (options.hosts == 2) options.link = link;
  const auto peers = bench::choose_any("against", against, names_of(systems()));
  if (!peers.empty()) options.base = peers.front();
  for (const auto& peer : peers) {
    if (std::ranges::find(options.systems, peer) == options.systems.end()) options.systems.push_back(peer);
  }
  check(options);
  return options;
}

}  // namespace phalanx::bench_train
