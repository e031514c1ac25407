// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "framework/comm/launch/launch_environment.h"
#include "framework/comm/store/store.h"
#include "tools/bench/options.h"
#include "tools/bench/subject.h"

namespace phalanx::bench {

/// This rank's end of every subject that is measured.
struct Connected {
  CommunicatorPtr world;             // communicator of the first backend; ranks use it to agree on figures
  std::vector<CommunicatorPtr> all;  // communicators that must outlive the subjects
  Subjects subjects;
};

/// Connects backends and peers in the order of the options, each through its own prefix of `store`. `store` is null if
/// the launcher gives ranks no rendezvous; only mpi and openmpi work without one. Collective. Throws ConfigError for a
/// backend that does not exist or cannot connect these ranks, and CommError if peers do not arrive.
Connected connect_subjects(const Options& options, const RankInfo& rank_info, const StorePtr& store);

}  // namespace phalanx::bench
