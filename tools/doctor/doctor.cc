// Prints what this machine and this build can do, what is loaded, and how fast ranks reach each other: doctor --json
// FILE
#include <gflags/gflags.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <filesystem>

#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/base/files.h"
#include "tools/doctor/diagnosis.h"
#include "tools/doctor/report.h"
#include "tools/launch/exit_status.h"

DEFINE_string(json, "", "file for what was found");

namespace phalanx::doctor {
namespace {

int run(int argc, char** argv) {
  google::SetUsageMessage("prints what this machine and this build can do");
  google::ParseCommandLineFlags(&argc, &argv, true);
  if (argc > 1) throw ConfigError("unexpected argument \"" + std::string(argv[1]) + "\"; see --helpshort");
  if (const auto caller = environment("BUILD_WORKING_DIRECTORY")) std::filesystem::current_path(*caller);
  const auto self = std::filesystem::canonical("/proc/self/exe");
  const Diagnosis found = diagnose(self.parent_path() / "probe");
  std::fputs(to_text(found, ::isatty(STDOUT_FILENO) == 1).c_str(), stdout);
  if (!FLAGS_json.empty()) write_atomically(FLAGS_json, to_json(found));
  return kDone;
}

}  // namespace
}  // namespace phalanx::doctor

int main(int argc, char** argv) {
  try {
    return phalanx::doctor::run(argc, argv);
  } catch (const phalanx::ConfigError& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return phalanx::kUsage;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return phalanx::kFailed;
  }
}
