// SPDX-License-Identifier: Apache-2.0
// Trains a model as described by a YAML file: train configs/quickstart.yaml
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "framework/base/config/config.h"
#include "framework/base/config/keys.h"
#include "framework/base/config/locate.h"
#include "framework/base/error.h"
#include "framework/base/printable.h"
#include "launch/agents/join_job.h"
#include "launch/exit_status.h"
#include "launch/job/job.h"
#include "launch/program.h"
#include "tools/command/command.h"
#include "tools/command_line.h"
#include "tools/config/load_checked.h"

namespace phalanx {
namespace {

// Ignores SIGXFSZ and SIGPIPE, which would end the process. A file that grows beyond the user's limit (ulimit -f) is
// then an error like a full disk, and a closed pipe is an error like any other.
void ignore_file_signals() {
  for (const int signal : {SIGXFSZ, SIGPIPE}) ::signal(signal, SIG_IGN);
}

// Opens /dev/null for every standard stream that is closed. Otherwise the next file that the program opens would take
// its descriptor and receive the messages that are meant for the user.
void fill_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) < 0) ::open("/dev/null", O_RDWR);  // returns the lowest free descriptor
  }
}

int run(const CommandLine& line, Job& job) {
  if (line.print_config) {
    std::fputs(printable(config::dump(job.config)).c_str(), stdout);
    return kDone;
  }
  job.run_dir = line.run_dir;
  job.init = line.init;
  keep_freed_memory();
  ignore_file_signals();
  return run_job(job);
}

int run(const Arguments& arguments) {
  fill_standard_streams();
  Job job{.command = arguments.command_line(), .started = process_start()};
  const auto keys = config::paths_of([&](config::Visitor& visitor) { job.config.visit(visitor); });
  const CommandLine line = parse_command_line(arguments, keys);
  if (line.help_config) {
    std::fputs(config::describe(job.config, line.help_section).c_str(), stdout);
    return kDone;
  }
  if (!line.join.empty()) {
    ignore_file_signals();
    return join_job(line.join, line.join_ranks);
  }
  if (line.config.empty())
    throw ConfigError("no config: " + arguments.name + " --config FILE (see --help, --help_config)");
  job.sources = {line.config, line.overrides};
  load_checked(job.config, job.sources);
  try {
    return run(line, job);
  } catch (const ConfigError& error) {
    throw config::located(error, job.sources);
  }
}

const bool train_registered =
    register_command({"train", "trains a model as described in a YAML file", CommandGroup::kModels, run});

}  // namespace
}  // namespace phalanx
