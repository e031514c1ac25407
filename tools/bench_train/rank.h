// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tools/bench_train/data.h"

namespace phalanx::bench_train {

/// What a rank of Phalanx is told.
struct RankJob {
  std::string config;    // file
  std::string workload;  // its name, which says what samples without files are like
  DataFiles data;
  std::string run_dir;        // exists
  bool plain_malloc = false;  // without train's settings of malloc
  bool meets = false;         // a barrier after every backward
};

std::string to_json(const RankJob& job);
RankJob read_job(const std::string& file);

/// Trains as the config says, in the place that the environment names, in turns (turns.h) by way of standard input and
/// output, until the input ends, and the process with it. Throws what run_experiment() throws.
[[noreturn]] void be_rank(const RankJob& job);

}  // namespace phalanx::bench_train
