// SPDX-License-Identifier: Apache-2.0
// Measures the algorithms for collectives on these ranks, and saves which are best:
// tune --ranks 2 --backend shm --ops all_reduce,broadcast --output tuned.json
#include <ATen/Parallel.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "framework/base/log.h"
#include "framework/collectives/selection/tuned_file.h"
#include "framework/collectives/tuning/best_rules.h"
#include "framework/comm/backend.h"
#include "framework/comm/launch/launch_environment.h"
#include "framework/comm/launch/locality.h"
#include "framework/comm/mesh/hierarchy.h"
#include "launch/exit_status.h"
#include "launch/program.h"
#include "launch/rank/connect.h"
#include "launch/start_ranks.h"
#include "tools/bench/measure.h"
#include "tools/bench/table.h"
#include "tools/command/command.h"
#include "tools/tune/options.h"

namespace phalanx::tune {
namespace {

constexpr Seconds kTimeout{120};

// Measurements on groups of one kind.
struct Part {
  Scope scope;
  bench::Result result;
};

// Measures `group`. All ranks of `world` have groups of the same size and agree on the times of the slowest.
bench::Result measure(const Options& options, const std::string& backend, const CommunicatorPtr& group,
                      Communicator& world) {
  bench::Options what;
  what.ops = options.ops;
  what.backends = {backend};
  what.algorithms = {"all"};
  what.bytes = options.bytes;
  what.memories = {options.memory};
  what.ranks = group->size();
  what.rounds = options.rounds;
  what.budget_ms = options.budget_ms;
  bench::Subjects subjects;
  subjects.push_back(bench::make_backend_subject(backend, group, what.algorithms));
  return bench::measure(what, subjects, world);
}

// Measures the group of all ranks and, if there are several hosts with equally many ranks, the groups inside them.
std::vector<Part> measure_all(const Options& options, const std::string& backend, const CommunicatorPtr& world,
                              const Topology& topology) {
  const bool one_host = topology.hosts.size() == 1;
  std::vector<Part> parts{{one_host ? Scope::kHost : Scope::kHosts, measure(options, backend, world, *world)}};
  const int ranks = topology.hosts.front().ranks;
  const bool equal = std::ranges::all_of(topology.hosts, [&](const auto& host) { return host.ranks == ranks; });
  if (one_host || !equal || ranks == 1) return parts;
  const Level hosts = split_by_key(kHostLevel, world, host_key());
  parts.push_back({Scope::kHost, measure(options, backend, hosts.intra, *world)});
  return parts;
}

void save(const Options& options, const Topology& topology, const std::vector<Part>& parts) {
  TunedFile tuned{.topology = topology};
  std::printf("%s\n", describe(topology).c_str());
  for (const auto& [scope, result] : parts) {
    for (const auto& row : result.rows) {
      tuned.measured.push_back({.op = row.op,
                                .algorithm = row.algorithm,
                                .bytes = row.bytes,
                                .p50_us = row.p50_us,
                                .ranks = row.ranks,
                                .scope = to_string(scope)});
    }
    std::printf("\n%s", bench::to_table(result).c_str());
  }
  tuned.table = SelectionTable(best_rules(tuned.measured));
  save_tuned(options.output, tuned);
  std::printf("\n%s\nSaved in %s; to use it: framework: {selection_file: %s}\n", tuned.table.to_text().c_str(),
              options.output.c_str(), options.output.c_str());
}

int run_as_rank(const Options& options, const LaunchEnvironment& launched) {
  at::set_num_threads(1);
  configure_log({.stderr_threshold = LogLevel::kNone});  // failures are reported, once for all ranks
  const auto backend = choose_backend(options.backend, launched);
  const auto world = connect(backend, launched, kTimeout);
  const auto topology = world_topology(*world, backend);
  const auto parts = measure_all(options, backend, world, topology);
  if (launched.rank_info.rank == 0) save(options, topology, parts);
  return kDone;
}

int run(const Arguments& arguments) {
  RankStart start{.command = arguments.command_line()};
  const Options options = parse_options(arguments);
  choose_backend(options.backend, {});  // throws if there is no such backend
  start.ranks = options.ranks;
  start.with_mpirun = backend_traits(options.backend).mpi || !options.hosts.empty();
  start.hosts = options.hosts;
  return start_ranks(start, [&](const LaunchEnvironment& launched) { return run_as_rank(options, launched); });
}

const bool tune_registered =
    register_command({"tune", "measures collective algorithms, and saves which are best", CommandGroup::kMachine, run});

}  // namespace
}  // namespace phalanx::tune
