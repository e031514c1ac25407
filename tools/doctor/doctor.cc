// SPDX-License-Identifier: Apache-2.0
// Prints what this machine and this build can do, which libraries are loaded, and how fast ranks reach each other:
// doctor --json FILE
// Or says why a running job stands still: doctor --attach PID --json FILE
// Or why a job of PyTorch did, from the dumps of its flight recorder: doctor --flight_recorder FILE...
#include <sys/types.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/base/printable.h"
#include "framework/observe/hang/collect.h"
#include "framework/observe/hang/explain.h"
#include "framework/observe/hang/flight_recorder_dump.h"
#include "launch/exit_status.h"
#include "launch/program.h"
#include "tools/command/command.h"
#include "tools/command/flags.h"
#include "tools/doctor/diagnosis.h"
#include "tools/doctor/report.h"

namespace phalanx::doctor {
namespace {

int print(const JobPicture& job, const std::string& json) {
  const std::string sentence = explain(job);
  std::printf("%s\n", printable(sentence).c_str());
  if (!json.empty()) write_atomically(json, to_json(job, sentence));
  return kDone;
}

// Prints what the ranks of a running job do.
int attach(std::int64_t process, const std::string& json) {
  if (process != static_cast<pid_t>(process)) throw ConfigError("--attach: a process has no such id");
  return print(picture_of_process(static_cast<pid_t>(process)), json);
}

// Prints what the ranks of a job of PyTorch did when it wrote these dumps.
int read_dumps(const std::vector<std::string>& files, const std::string& json) {
  if (files.empty()) throw ConfigError("--flight_recorder: name the dumps of all ranks, such as nccl_trace_rank_*");
  std::vector<FlightRecorderDump> dumps;
  for (const auto& file : files) dumps.push_back(read_flight_recorder_dump(file));
  return print(picture_of_dumps(dumps), json);
}

int run(const Arguments& arguments) {
  std::string json;
  std::int64_t process = 0;
  bool flight_recorder = false;
  Flags flags(arguments, {"", "--attach PID", "--flight_recorder FILE..."});
  flags.add("json", &json, "JSON file for the findings");
  flags.add("attach", &process, "process of a rank or of its launcher: prints why that job stands still");
  flags.add("flight_recorder", &flight_recorder,
            "reads dumps of PyTorch's flight recorder, one of each rank: prints why that job stood still");
  const auto files = flags.parse(arguments.words);
  if (process < 0) throw ConfigError("--attach: a process has no such id");
  if (flight_recorder && process > 0) throw ConfigError("--attach and --flight_recorder exclude each other");
  if (flight_recorder) return read_dumps(files, json);
  refuse(files);
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
