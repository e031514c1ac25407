// Trains a model as a YAML file says: train --config configs/quickstart.yaml
#include <signal.h>

#include <cstdio>
#include <filesystem>
#include <string>

#include "framework/base/config/config.h"
#include "framework/base/config/keys.h"
#include "framework/base/config/locate.h"
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

int run(const CommandLine& line, Job& job) {
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

int run(int argc, char** argv) {
  Job job{.command = {argv, argv + argc}, .started = process_start()};
  const auto keys = config::paths_of([&](config::Visitor& visitor) { job.config.visit(visitor); });
  const CommandLine line = parse_command_line(argc, argv, keys);
  if (line.help_config) {
    std::fputs(config::describe(job.config, line.help_section).c_str(), stdout);
    return kDone;
  }
  if (line.config.empty()) throw ConfigError("no config: train --config FILE (see --help, --help_config)");
  job.sources = {line.config, line.overrides};
  config::load(job.config, line.config, line.overrides);
  try {
    return run(line, job);
  } catch (const ConfigError& error) {
    throw config::located(error, job.sources);
  }
}

}  // namespace
}  // namespace phalanx

int main(int argc, char** argv) {
  return phalanx::run_main([&] { return phalanx::run(argc, argv); });
}
