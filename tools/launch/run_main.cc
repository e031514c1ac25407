#include "tools/launch/run_main.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <thread>

#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/comm/launch_environment.h"
#include "tools/launch/exit_status.h"

namespace phalanx {
namespace {

// `bazel run` starts programs in a folder of its own and tells where its user is.
void return_to_caller() {
  const auto caller = environment("BUILD_WORKING_DIRECTORY");
  if (caller && ::chdir(caller->c_str()) != 0) throw ConfigError("cannot change to folder " + *caller);
}

void let_first_rank_tell() {
  try {
    const auto launched = detect_launch_environment();
    if (launched && launched->place.rank > 0) std::this_thread::sleep_for(std::chrono::seconds(1));
  } catch (const ConfigError&) {
    // May be the very error to tell.
  }
}

int fail(const std::exception& error, ExitStatus status) {
  let_first_rank_tell();
  std::fprintf(stderr, "%s\n", error.what());
  return status;
}

}  // namespace

int run_main(const std::function<int()>& program) {
  try {
    return_to_caller();
    return program();
  } catch (const ConfigError& error) {
    return fail(error, kUsage);
  } catch (const std::exception& error) {
    return fail(error, kFailed);
  }
}

}  // namespace phalanx
