// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "framework/comm/communicator.h"
#include "framework/comm/store/store.h"

namespace phalanx::testing {

/// The function that each rank of a test runs with its world.
using RankBody = std::function<void(const CommunicatorPtr& world)>;

/// Runs `body` on `ranks` ranks of `backend` and returns when all are done.
///
///   inproc  threads of this process
///   gloo    threads of this process, connected by TCP over the loopback interface
///   gloo_processes
///           processes forked from this one, connected in the same way
///   on_device, on_cuda
///           threads of this process; all tensors are copied to a device (framework/testing/on_device)
///   staged  threads of this process; all tensors are handled like device tensors (framework/backends/device)
///   shm     processes forked from this one, which must not have started threads (including those of OpenMP)
///   mpi     the first `ranks` processes of the mpirun that started this one; the others skip `body`
///   mpi_processes
///           processes of an mpirun for this call alone, which may end while others go on (own_mpirun.h)
///   hybrid  forked or mpirun processes, on simulated hosts of two ranks each, or three if there are more than four
///           ranks; the last host may have fewer. Uses shm within hosts. Between hosts, uses mpi if mpirun started the
///           program, and gloo otherwise; these must also be linked into the test
///   hybrid_of_shm
///           like hybrid with forked processes, but uses another shm world between the hosts
///
/// The test fails, with the rank named, if a body throws, an expectation in a child process fails, or a child dies.
/// Peers of a failed rank get CommError::kPeerLost. All backends except inproc must be linked into the test.
void run_ranks(const std::string& backend, int ranks, const RankBody& body, Seconds timeout = Seconds(60));

}  // namespace phalanx::testing
