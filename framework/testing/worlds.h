// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "framework/comm/communicator.h"
#include "framework/comm/store.h"

namespace phalanx::testing {

/// What one rank of a test does with its world.
using RankBody = std::function<void(const CommunicatorPtr& world)>;

/// Runs `body` on `ranks` ranks of `backend` and returns when all are done.
///
///   inproc  threads of this process
///   gloo    threads of this process, connected by TCP over the loopback
///   staged  threads of this process, whose tensors all go as those of devices do (framework/backends/device)
///   shm     processes forked from this one, which must not have started threads (OpenMP's included)
///   mpi     the first `ranks` processes of the mpirun that started this one; the others skip `body`
///   hybrid  processes of either kind, on hosts of two ranks each, or of three where there are more than four; the last
///           may have fewer. shm inside hosts; between them mpi where mpirun started the program, otherwise gloo: these
///           must be linked into the test too
///   hybrid_of_shm
///           the same of forked processes, with another world of shm between the hosts
///
/// An exception in a body, a failed expectation in a child process and a child's death fail the test, with the rank
/// named; peers of a failed rank get CommError::kPeerLost. All but inproc must be linked into the test.
void run_ranks(const std::string& backend, int ranks, const RankBody& body, Seconds timeout = Seconds(60));

}  // namespace phalanx::testing
