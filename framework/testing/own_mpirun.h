// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

namespace phalanx::testing {

/// Calls `rank` in `ranks` processes of an mpirun that goes on without ranks that have ended (--with-ft ulfm). They run
/// the current test again, alone, up to this call, so earlier calls do nothing there. Returns when all have ended.
///
/// A rank ends when `rank` returns, without MPI_Finalize, so that the others see it leave; or `rank` may end it by
/// _exit(0) or SIGKILL. The test fails, with the output of the ranks, if one ends in another way, if an expectation
/// fails in one of them, or if they take more than two minutes.
///
/// The environment variable PHALANX_TEST_MPIRUN names mpirun.
void run_under_own_mpirun(int ranks, const std::function<void()>& rank);

}  // namespace phalanx::testing
