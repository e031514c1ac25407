// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "framework/comm/launch_environment.h"
#include "framework/comm/store.h"
#include "tools/bench/options.h"
#include "tools/bench/subject.h"

namespace phalanx::bench {

/// This rank's end of everything that is measured.
struct Connected {
  CommunicatorPtr world;             // of the first backend, for agreeing on figures
  std::vector<CommunicatorPtr> all;  // what subjects need to live
  Subjects subjects;
};

/// Connects backends and peers in the order of the options, each through a part of `store` of its own; null where the
/// launcher gives ranks no place to meet, which mpi and openmpi alone can do without. Collective. Throws ConfigError
/// for a backend that is not there or cannot connect these ranks, CommError when peers do not come.
Connected connect_subjects(const Options& options, const RankInfo& rank_info, const StorePtr& store);

}  // namespace phalanx::bench
