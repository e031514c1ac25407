// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>

#include "datasets/dataset.h"
#include "engine/run_folder.h"
#include "framework/comm/launch/launch_environment.h"
#include "framework/comm/store/store.h"
#include "launch/job/job.h"
#include "launch/local/meeting_folder.h"
#include "launch/signals/stop_messages.h"

namespace phalanx {

/// Objects that the ranks of a process share if they are threads.
struct SharedByThreads {
  StorePtr store;  // for the rendezvous of the threads
  Splits splits;
};

/// A rank that exists, as a thread or as a process. run_rank() does the same for all ranks, except for what follows
/// from these fields.
struct StartedRank {
  LaunchEnvironment launched;  // its rank, and the address of the rendezvous

  /// The run folder, which our launcher has created. Our launcher also reports failures. Absent if another launcher
  /// started the rank: the ranks then agree on a folder and report failures themselves.
  std::optional<RunFolder> folder{};

  const SharedByThreads* shared = nullptr;  // null: the rank is a process; must outlive the rank

  /// The process is to take the place of a lost rank. Until it does, it has no peers, and its rank is only its number.
  std::optional<Newcomer> newcomer{};

  /// Is called by the first of the ranks that are left when the run has ended as it should and everything is saved,
  /// with the ExitStatus of the run. Null: nobody has to know.
  std::function<void(int status)> completed{};

  int rank() const { return launched.rank_info.rank; }
};

/// Returns a description of rank `rank` of `ranks` that are threads of this process.
StartedRank thread_rank(int rank, int ranks, const RunFolder& folder, const SharedByThreads& shared);

/// Returns a description of the rank that this process is, as a child of launch_local().
StartedRank forked_rank(const RunFolder& folder);

/// Returns a description of the rank that this process is, after mpirun (with or without launch_mpi()), srun or
/// torchrun has started it. Prepares the process for it: it ends with its launcher, stops when asked, and prints
/// nothing to standard output unless it is rank 0.
StartedRank joined_rank(const Job& job, const LaunchEnvironment& launched);

/// Returns how the job stops when a stop is requested.
StopPolicy stop_policy_of(const Job& job);

}  // namespace phalanx
