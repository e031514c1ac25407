// SPDX-License-Identifier: Apache-2.0
#include "tools/regress/session/environment.h"

#include "framework/base/text.h"
#include "framework/base/version.h"
#include "tools/doctor/libraries.h"
#include "tools/doctor/machine.h"
#include "tools/regress/places/process.h"

namespace phalanx::regress {

history::Environment read_environment(const std::string& hosts) {
  const auto machine = doctor::read_machine();
  std::map<std::string, std::string> versions{
      {"phalanx", kVersion}, {"compiler", machine.compiler}, {"kernel", machine.kernel}};
  for (const auto& library : doctor::libraries()) {
    if (library.name == "LibTorch") versions["libtorch"] = library.linked;
    if (library.name == "Open MPI") versions["mpi"] = library.linked;
  }
  return {.hardware = machine.devices.empty() ? machine.cpu : join(machine.devices, ", "),
          .cores = machine.allowed_cores,
          .hosts = {hosts},
          .versions = versions};
}

Checkout read_checkout(const std::string& folder) {
  const auto commit = capture({"git", "rev-parse", "HEAD"}, folder);
  if (commit.status != 0) return {};
  const auto changes = capture({"git", "status", "--porcelain", "--untracked-files=no"}, folder);
  return {.commit = commit.output, .dirty = !changes.output.empty()};
}

}  // namespace phalanx::regress
