// Trains a model as a YAML file says: train --config configs/quickstart.yaml
#include <signal.h>

#include <cstdio>
#include <filesystem>
#include <string>

#include "framework/base/config/config.h"
#include "framework/base/error.h"
#include "launch/exit_status.h"
#include "launch/job/job.h"
#include "launch/program.h"
#include "tools/command_line.h"

namespace phalanx {
namespace {

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

}  // namespace
}  // namespace phalanx

int main(int argc, char** argv) {
  return phalanx::run_main([&] { return phalanx::run(argc, argv); });
}
