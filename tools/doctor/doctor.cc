// SPDX-License-Identifier: Apache-2.0
// Prints what this machine and this build can do, which libraries are loaded, and how fast ranks reach each other:
// doctor --json FILE
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <string>

#include "framework/base/files.h"
#include "launch/exit_status.h"
#include "launch/program.h"
#include "tools/command/command.h"
#include "tools/command/flags.h"
#include "tools/doctor/diagnosis.h"
#include "tools/doctor/report.h"

namespace phalanx::doctor {
namespace {

int run(const Arguments& arguments) {
  std::string json;
  Flags flags(arguments);
  flags.add("json", &json, "JSON file for the findings");
  refuse(flags.parse(arguments.words));
  const std::filesystem::path self = arguments.program.front();
  const Diagnosis found = diagnose(self.parent_path() / "probe");
  std::fputs(to_text(found, ::isatty(STDOUT_FILENO) == 1).c_str(), stdout);
  if (!json.empty()) write_atomically(json, to_json(found));
  return kDone;
}

const bool doctor_registered =
    register_command({"doctor", "prints what this machine and this build can do", CommandGroup::kMachine, run});

}  // namespace
}  // namespace phalanx::doctor
