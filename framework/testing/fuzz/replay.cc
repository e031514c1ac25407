// SPDX-License-Identifier: Apache-2.0
// Repeats one seed of the schedule fuzzer:  bazel run //framework/testing/fuzz:replay -- --seed 42
#include <gflags/gflags.h>

#include <cstdio>

#include "framework/testing/fuzz/run_schedule.h"

DEFINE_uint64(seed, 0, "seed of the schedule to run");

int main(int argc, char** argv) {
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  const phalanx::testing::Program program(FLAGS_seed);
  std::printf("seed %llu: %d ranks\n", static_cast<unsigned long long>(FLAGS_seed), program.ranks);
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    std::printf("  step %zu: %s\n", i, describe(program.steps[i]).c_str());
  }
  std::fflush(stdout);
  const auto outcome = phalanx::testing::run_schedule(FLAGS_seed);
  if (outcome.killed >= 0) std::printf("rank %d was killed\n", outcome.killed);
  for (const auto& fault : outcome.faults) std::printf("%s\n", fault.c_str());
  std::printf("%s after %llu schedule points, trace %016llx; %d ranks finished\n",
              outcome.faults.empty() ? "passed" : "FAILED", static_cast<unsigned long long>(outcome.points),
              static_cast<unsigned long long>(outcome.trace), outcome.finished);
  return outcome.faults.empty() ? 0 : 1;
}
