// SPDX-License-Identifier: Apache-2.0
// Trains a model as described by a YAML file: train --config configs/quickstart.yaml
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <string>

#include "framework/base/config/config.h"
#include "framework/base/config/keys.h"
#include "framework/base/config/locate.h"
#include "framework/base/error.h"
#include "framework/base/printable.h"
#include "launch/exit_status.h"
#include "launch/job/job.h"
#include "launch/program.h"
#include "tools/command_line.h"
#include "tools/flags/load_checked.h"

namespace phalanx {
namespace {

// Ignores SIGXFSZ and SIGPIPE, which would end the process. A file that grows beyond the user's limit (ulimit -f) is
// then an error like a full disk, and a closed pipe is an error like any other.
void keep_going() {
  for (const int signal : {SIGXFSZ, SIGPIPE}) ::signal(signal, SIG_IGN);
}

// Opens /dev/null for every standard stream that is closed. Otherwise the next file that the program opens would take
// its descriptor and receive the messages that are meant for the user.
void fill_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) < 0) ::open("/dev/null", O_RDWR);  // returns the lowest free descriptor
  }
}

// Returns the absolute path of this program, so that mpirun can start ranks from any folder.
std::string own_path() { return std::filesystem::canonical("/proc/self/exe").string(); }

int run(const CommandLine& line, Job& job) {
  if (line.print_config) {
    std::fputs(printable(config::dump(job.config)).c_str(), stdout);
    return kDone;
  }
  job.run_dir = line.run_dir;
  job.command[0] = own_path();
  keep_freed_memory();
  keep_going();
  return run_job(job);
}

int run(int argc, char** argv) {
  fill_standard_streams();
  Job job{.command = {argv, argv + argc}, .started = process_start()};
  const auto keys = config::paths_of([&](config::Visitor& visitor) { job.config.visit(visitor); });
  const CommandLine line = parse_command_line(argc, argv, keys);
  if (line.help_config) {
    std::fputs(config::describe(job.config, line.help_section).c_str(), stdout);
    return kDone;
  }
  if (line.config.empty()) throw ConfigError("no config: train --config FILE (see --help, --help_config)");
  job.sources = {line.config, line.overrides};
  load_checked(job.config, job.sources);
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
