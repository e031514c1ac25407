// Measures collectives of several backends side by side: bench --op all_reduce --ranks 2 --backends shm,mpi
#include <ATen/Parallel.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <filesystem>

#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/base/log.h"
#include "tools/bench/measure.h"
#include "tools/bench/options.h"
#include "tools/bench/subject.h"
#include "tools/bench/table.h"
#include "tools/job/connect.h"
#include "tools/launch/exit_status.h"
#include "tools/launch/local.h"
#include "tools/launch/mpi.h"
#include "tools/launch/run_rank.h"
#include "tools/launch/temporary_folder.h"

namespace phalanx::bench {
namespace {

int run_as_rank(const Options& options, const LaunchEnvironment& launched) {
  at::set_num_threads(1);
  configure_log({.stderr_threshold = LogLevel::kNone});  // failures are reported, once for all ranks
  Subjects subjects;
  CommunicatorPtr world;
  for (const auto& name : options.backends) {
    const bool peer = name == "openmpi";
    const auto connected = connect(peer ? "mpi" : name, launched, Seconds(60));
    subjects[name] = peer ? make_openmpi_subject() : make_backend_subject(connected);
    if (!world || !peer) world = connected;
  }
  const Result result = measure(options, subjects, *world);
  if (launched.place.rank != 0) return kDone;
  std::fputs(to_table(result).c_str(), stdout);
  if (!options.json.empty()) write_atomically(options.json, to_json(result));
  return kDone;
}

int launch(const Options& options, std::vector<std::string> command) {
  TemporaryFolder logs;
  if (options.backends == std::vector<std::string>{"shm"}) {
    return launch_local({.ranks = options.ranks, .log_folder = logs.path()},
                        [&](int) { return run_as_rank(options, *detect_launch_environment()); });
  }
  ::setenv("PHALANX_BENCH_LOGS", logs.path().c_str(), 1);
  command[0] = std::filesystem::canonical("/proc/self/exe").string();
  return launch_mpi({.ranks = options.ranks, .log_folder = logs.path(), .command = command});
}

int run(int argc, char** argv) {
  if (const auto caller = environment("BUILD_WORKING_DIRECTORY")) std::filesystem::current_path(*caller);
  const std::vector<std::string> command(argv, argv + argc);  // before gflags moves the words
  const Options options = parse_options(argc, argv);
  const auto launched = detect_launch_environment();
  if (!launched) return launch(options, command);
  return run_rank(launched->place.rank, environment("PHALANX_BENCH_LOGS").value_or("."), "",
                  [&] { return run_as_rank(options, *launched); });
}

}  // namespace
}  // namespace phalanx::bench

int main(int argc, char** argv) {
  try {
    return phalanx::bench::run(argc, argv);
  } catch (const phalanx::ConfigError& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return phalanx::kUsage;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return phalanx::kFailed;
  }
}
