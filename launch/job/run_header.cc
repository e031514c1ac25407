// SPDX-License-Identifier: Apache-2.0
#include "launch/job/run_header.h"

#include <unistd.h>

#include "framework/base/console.h"
#include "framework/base/environment.h"

namespace phalanx {

void print_run_header(const Job& job, const RunFolder& folder, int ranks, const std::string& backend) {
  if (job.quiet) return;
  const auto& config = job.config;
  std::string text = "Run folder  " + folder.path() + "\n";
  if (config.watch.progress) {
    text += "Model       " + config.model.selected() + "\n";
    text += "Dataset     " + config.dataset.selected() + "\n";
    text += "Ranks       " + std::to_string(ranks) + ", backend " + backend + "\n";
    text += "Strategy    " + config.strategy.selected() + "\n";
  }
  standard_output().write(text);
}

bool on_terminal() {
  if (const auto setting = environment("PHALANX_TERMINAL")) return *setting == "1";
  // Open MPI always gives its ranks a pseudo-terminal, even if its own output is not a terminal.
  return !environment("OMPI_COMM_WORLD_RANK") && ::isatty(STDOUT_FILENO) != 0;
}

}  // namespace phalanx
