// SPDX-License-Identifier: Apache-2.0
// Prints what this machine and this build can do, which libraries are loaded, and how fast ranks reach each other:
// doctor --json FILE
#include <gflags/gflags.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <string>

#include "framework/base/files.h"
#include "launch/exit_status.h"
#include "launch/program.h"
#include "tools/doctor/diagnosis.h"
#include "tools/doctor/report.h"
#include "tools/flags/parse_flags.h"

DEFINE_string(json, "", "JSON file for the findings");

namespace phalanx::doctor {
namespace {

int run(int argc, char** argv) {
  refuse(
      parse_flags({.purpose = "prints what this machine and this build can do", .files = "tools/doctor/"}, argc, argv));
  const auto self = std::filesystem::canonical("/proc/self/exe");
  const Diagnosis found = diagnose(self.parent_path() / "probe");
  std::fputs(to_text(found, ::isatty(STDOUT_FILENO) == 1).c_str(), stdout);
  if (!FLAGS_json.empty()) write_atomically(FLAGS_json, to_json(found));
  return kDone;
}

}  // namespace
}  // namespace phalanx::doctor

int main(int argc, char** argv) {
  return phalanx::run_main([&] { return phalanx::doctor::run(argc, argv); });
}
