// SPDX-License-Identifier: Apache-2.0
#include "launch/program.h"

#include <malloc.h>
#include <unistd.h>

#include <cstdio>
#include <ctime>
#include <exception>
#include <optional>
#include <sstream>
#include <string>
#include <thread>

#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/base/printable.h"
#include "framework/base/reason.h"
#include "framework/comm/launch/launch_environment.h"
#include "launch/exit_status.h"
#include "launch/rank/launcher_watch.h"

namespace phalanx {
namespace {

constexpr const char* kCallersFolder = "BUILD_WORKING_DIRECTORY";  // set by `bazel run`

// `bazel run` starts programs in its own folder and passes the folder of its caller.
void enter_callers_folder() {
  const auto caller = environment(kCallersFolder);
  if (caller && ::chdir(caller->c_str()) != 0) throw ConfigError("cannot change to folder " + *caller);
}

// Returns nullopt also if the launcher's variables are wrong: the code that needs them reports the error.
std::optional<LaunchEnvironment> launcher_if_valid() {
  try {
    return detect_launch_environment();
  } catch (const ConfigError&) {
    return std::nullopt;
  }
}

void let_first_rank_report() {
  const auto launched = launcher_if_valid();
  if (launched && launched->rank_info.rank > 0) std::this_thread::sleep_for(std::chrono::seconds(1));
}

int fail(const std::exception& error, ExitStatus status) {
  let_first_rank_report();
  std::fprintf(stderr, "%s\n", printable(reason(error)).c_str());
  return status;
}

constexpr int kStartField = 22;  // field of /proc/self/stat: clock ticks from boot to the start of the process
constexpr int kFirstAfterName = 3;

// When the program was loaded, after its libraries.
const auto loaded = std::chrono::steady_clock::now();

double seconds_from_boot() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

}  // namespace

int run_main(const std::function<int()>& program) {
  try {
    if (const auto launched = launcher_if_valid()) end_with_launcher(*launched);
    enter_callers_folder();
    return program();
  } catch (const ConfigError& error) {
    return fail(error, kUsage);
  } catch (const std::exception& error) {
    return fail(error, kFailed);
  }
}

std::chrono::steady_clock::time_point process_start() {
  if (environment(kCallersFolder)) return loaded;
  const std::string stat = read_file("/proc/self/stat");
  std::istringstream fields(stat.substr(stat.rfind(')') + 1));  // the name before it may contain any characters
  std::string field;
  for (int i = kFirstAfterName; i <= kStartField; ++i) fields >> field;
  const double start = std::stod(field) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  const std::chrono::duration<double> age(seconds_from_boot() - start);
  using Clock = std::chrono::steady_clock;
  return Clock::now() - std::chrono::duration_cast<Clock::duration>(age);
}

void keep_freed_memory() {
  ::mallopt(M_MMAP_MAX, kMallocMmapMax);
  ::mallopt(M_TRIM_THRESHOLD, kMallocTrimThreshold);
  ::mallopt(M_TOP_PAD, kMallocTopPad);
}

}  // namespace phalanx
