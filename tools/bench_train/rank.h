// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tools/bench_train/data.h"

namespace phalanx::bench_train {

/// The job of one rank of Phalanx.
struct RankJob {
  std::string config;    // path of the config
  std::string workload;  // name of the workload, which describes the samples if there are no files
  DataFiles data;
  std::string run_dir;        // must exist
  bool plain_malloc = false;  // do not apply train's settings of malloc
  bool has_barrier = false;   // run a barrier after every backward
};

std::string to_json(const RankJob& job);
RankJob read_job(const std::string& file);

/// Trains by the config of the job, at the rank that the environment names, in turns (turns.h) that standard input and
/// output control. Ends the process when the input ends. Throws what run_experiment() throws.
[[noreturn]] void run_as_rank(const RankJob& job);

}  // namespace phalanx::bench_train
