// Measures the ways of doing collectives on these ranks, and saves which are best:
// tune --ranks 2 --backend shm --ops all_reduce,broadcast --output tuned.json
#include <ATen/Parallel.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>

#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/base/log.h"
#include "framework/collectives/selection/tuned_file.h"
#include "framework/comm/launch_environment.h"
#include "tools/bench/measure.h"
#include "tools/bench/table.h"
#include "tools/job/connect.h"
#include "tools/job/topology.h"
#include "tools/launch/exit_status.h"
#include "tools/launch/local.h"
#include "tools/launch/mpi.h"
#include "tools/launch/run_rank.h"
#include "tools/launch/temporary_folder.h"
#include "tools/tune/best_rules.h"
#include "tools/tune/options.h"

namespace phalanx::tune {
namespace {

constexpr Seconds kTimeout{120};

bench::Result measure(const Options& options, const std::string& backend, const CommunicatorPtr& world) {
  bench::Options what;
  what.ops = options.ops;
  what.backends = {backend};
  what.algorithms = {"all"};
  what.bytes = options.bytes;
  what.memories = {options.memory};
  what.ranks = world->size();
  what.rounds = options.rounds;
  what.budget_ms = options.budget_ms;
  bench::Subjects subjects;
  subjects.push_back(bench::make_backend_subject(backend, world, what.algorithms));
  return bench::measure(what, subjects, *world);
}

void save(const Options& options, const Topology& topology, const bench::Result& result) {
  TunedFile tuned{.topology = topology, .table = SelectionTable(best_rules(result.rows))};
  for (const auto& row : result.rows) {
    tuned.measured.push_back({.op = row.op, .algorithm = row.algorithm, .bytes = row.bytes, .p50_us = row.p50_us});
  }
  save_tuned(options.output, tuned);
  std::printf("%s\n\n%s\n%s\nSaved in %s; to use it: framework: {selection_file: %s}\n", describe(topology).c_str(),
              bench::to_table(result).c_str(), tuned.table.to_text().c_str(), options.output.c_str(),
              options.output.c_str());
}

int run_as_rank(const Options& options, const LaunchEnvironment& launched) {
  at::set_num_threads(1);
  configure_log({.stderr_threshold = LogLevel::kNone});  // failures are reported, once for all ranks
  const auto backend = choose_backend(options.backend, launched);
  const auto world = connect(backend, launched, kTimeout);
  const auto topology = world_topology(*world, backend);
  const auto result = measure(options, backend, world);
  if (launched.place.rank == 0) save(options, topology, result);
  return kDone;
}

int launch(const Options& options, std::vector<std::string> command) {
  TemporaryFolder logs;
  if (options.backend != "mpi" && options.hosts.empty()) {
    return launch_local({.ranks = options.ranks, .log_folder = logs.path()},
                        [&](int) { return run_as_rank(options, *detect_launch_environment()); });
  }
  ::setenv("PHALANX_TUNE_LOGS", logs.path().c_str(), 1);
  command[0] = std::filesystem::canonical("/proc/self/exe").string();
  return launch_mpi(
      {.ranks = options.ranks, .hosts = options.hosts, .log_folder = logs.path(), .command = std::move(command)});
}

int run(int argc, char** argv) {
  if (const auto caller = environment("BUILD_WORKING_DIRECTORY")) std::filesystem::current_path(*caller);
  const std::vector<std::string> command(argv, argv + argc);  // before gflags moves the words
  const Options options = parse_options(argc, argv);
  choose_backend(options.backend, {});  // is there
  const auto launched = detect_launch_environment();
  if (!launched) return launch(options, command);
  return run_rank(launched->place.rank, environment("PHALANX_TUNE_LOGS").value_or("."), "",
                  [&] { return run_as_rank(options, *launched); });
}

}  // namespace
}  // namespace phalanx::tune

int main(int argc, char** argv) {
  try {
    return phalanx::tune::run(argc, argv);
  } catch (const phalanx::ConfigError& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return phalanx::kUsage;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return phalanx::kFailed;
  }
}
