// Trains a model as a YAML file says: train --config configs/quickstart.yaml
#include <malloc.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <thread>

#include "framework/base/config/config.h"
#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/comm/launch_environment.h"
#include "tools/job/command_line.h"
#include "tools/job/job.h"
#include "tools/job/process_start.h"
#include "tools/launch/exit_status.h"

namespace phalanx {
namespace {

// `bazel run` starts programs in a folder of its own and tells where its user is.
void return_to_caller() {
  const auto caller = environment("BUILD_WORKING_DIRECTORY");
  if (caller && ::chdir(caller->c_str()) != 0) throw ConfigError("cannot go to " + *caller);
}

// A training step frees and allocates the same large buffers again and again. Kept by the process, they cost nothing;
// given back to the system, they cost up to a quarter of the time in page faults.
void keep_freed_memory() {
  ::mallopt(M_MMAP_MAX, 0);
  ::mallopt(M_TRIM_THRESHOLD, 2'000'000'000);
  ::mallopt(M_TOP_PAD, 64 << 20);
}

// A file that grows beyond the user's limit (ulimit -f) is an error like a full disk, not the end of the process.
void keep_going_at_file_limits() { ::signal(SIGXFSZ, SIG_IGN); }

// For ranks that mpirun starts, wherever they are started.
std::string own_path() { return std::filesystem::canonical("/proc/self/exe").string(); }

int run(int argc, char** argv) {
  Job job{.command = {argv, argv + argc}, .started = process_start()};
  const CommandLine line = parse_command_line(argc, argv);
  if (line.help_config) {
    std::fputs(config::describe(job.config).c_str(), stdout);
    return kDone;
  }
  if (line.config.empty()) throw ConfigError("no config: train --config FILE (see --help, --help_config)");
  return_to_caller();
  config::load(job.config, line.config, line.overrides);
  check(job.config);
  if (line.print_config) {
    std::fputs(config::dump(job.config).c_str(), stdout);
    return kDone;
  }
  job.run_dir = line.run_dir;
  job.command[0] = own_path();
  keep_freed_memory();
  keep_going_at_file_limits();
  return run_job(job);
}

// Ranks that a launcher started fail alike before they know each other. The first one tells at once; while the others
// wait, most launchers end them.
int fail(const std::exception& error, ExitStatus status) {
  try {
    const auto launched = detect_launch_environment();
    if (launched && launched->place.rank > 0) std::this_thread::sleep_for(std::chrono::seconds(1));
  } catch (const ConfigError&) {
    // May be the very error to tell.
  }
  std::fprintf(stderr, "%s\n", error.what());
  return status;
}

}  // namespace
}  // namespace phalanx

int main(int argc, char** argv) {
  try {
    return phalanx::run(argc, argv);
  } catch (const phalanx::ConfigError& error) {
    return phalanx::fail(error, phalanx::kUsage);
  } catch (const std::exception& error) {
    return phalanx::fail(error, phalanx::kFailed);
  }
}
