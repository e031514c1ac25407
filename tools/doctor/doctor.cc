// SPDX-License-Identifier: Apache-2.0
// Prints what this machine and this build can do, which libraries are loaded, and how fast ranks reach each other:
// doctor --json FILE
// Or says why a running job stands still: doctor --attach PID --json FILE
#include <sys/types.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>

#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/base/printable.h"
#include "framework/observe/hang/collect.h"
#include "framework/observe/hang/explain.h"
#include "launch/exit_status.h"
#include "launch/program.h"
#include "tools/command/command.h"
#include "tools/command/flags.h"
#include "tools/doctor/diagnosis.h"
#include "tools/doctor/report.h"

namespace phalanx::doctor {
namespace {

// Says what the ranks of a running job do.
int attach(std::int64_t process, const std::string& json) {
  if (process != static_cast<pid_t>(process)) throw ConfigError("--attach: a process has no such id");
  const JobPicture job = picture_of_process(static_cast<pid_t>(process));
  const std::string sentence = explain(job);
  std::printf("%s\n", printable(sentence).c_str());
  if (!json.empty()) write_atomically(json, to_json(job, sentence));
  return kDone;
}

int run(const Arguments& arguments) {
  std::string json;
  std::int64_t process = 0;
  Flags flags(arguments, {"", "--attach PID"});
  flags.add("json", &json, "JSON file for the findings");
  flags.add("attach", &process, "process of a rank or of its launcher: prints why that job stands still");
  refuse(flags.parse(arguments.words));
  if (process < 0) throw ConfigError("--attach: a process has no such id");
  if (process > 0) return attach(process, json);
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
