// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/mpi/ulfm.h"

// Must come after mpi.h, whose declarations it uses.
#include <mpi-ext.h>

#include <algorithm>
#include <numeric>

#include "framework/backends/mpi/runtime.h"

#ifdef MPIX_ERR_PROC_FAILED  // the build's Open MPI has ULFM
// Weak, since the Open MPI at run time may be another one, without these functions: then they are null.
#pragma weak MPIX_Comm_revoke
#pragma weak MPIX_Comm_is_revoked
#pragma weak MPIX_Comm_iagree
#pragma weak MPIX_Comm_shrink
#pragma weak MPIX_Comm_failure_ack
#pragma weak MPIX_Comm_failure_get_acked
#endif

namespace phalanx::mpi::inline PHALANX_MPI_BUILD {

#ifdef MPIX_ERR_PROC_FAILED

namespace {

// Acknowledges the ends of these ranks, so that later agreements do not report them again.
std::vector<int> ended_ranks(MPI_Comm comm) {
  MPI_Group all = MPI_GROUP_NULL, ended = MPI_GROUP_NULL;
  int count = 0;
  if (MPIX_Comm_failure_ack(comm) != MPI_SUCCESS || MPIX_Comm_failure_get_acked(comm, &ended) != MPI_SUCCESS) return {};
  MPI_Group_size(ended, &count);
  std::vector<int> in_ended(static_cast<std::size_t>(count)), ranks(in_ended.size());
  std::iota(in_ended.begin(), in_ended.end(), 0);
  MPI_Comm_group(comm, &all);
  MPI_Group_translate_ranks(ended, count, in_ended.data(), all, ranks.data());
  MPI_Group_free(&all);
  if (ended != MPI_GROUP_EMPTY) MPI_Group_free(&ended);
  std::ranges::sort(ranks);
  return ranks;
}

bool is_revoked(MPI_Comm comm) {
  int revoked = 0;
  return MPIX_Comm_is_revoked(comm, &revoked) == MPI_SUCCESS && revoked != 0;
}

bool exists() {
  return MPIX_Comm_revoke != nullptr && MPIX_Comm_is_revoked != nullptr && MPIX_Comm_iagree != nullptr &&
         MPIX_Comm_shrink != nullptr && MPIX_Comm_failure_ack != nullptr && MPIX_Comm_failure_get_acked != nullptr;
}

bool is_switched_on() {
  int* value = nullptr;
  int found = 0;
  return MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_FT, &value, &found) == MPI_SUCCESS && found != 0 && *value != 0;
}

}  // namespace

const Ulfm* ulfm() noexcept {
  static const Ulfm functions{.revoke = &MPIX_Comm_revoke,
                              .begin_agreement = &MPIX_Comm_iagree,
                              .create_of_survivors = &MPIX_Comm_shrink,
                              .is_revoked = &is_revoked,
                              .ended_ranks = &ended_ranks};
  static const bool usable = exists() && is_switched_on();
  return usable ? &functions : nullptr;
}

std::string why_no_ulfm() {
  if (exists()) {
    return "ULFM, with which MPI's ranks go on after one of them has ended, is switched off; start the ranks with "
           "`mpirun --with-ft ulfm`";
  }
  return version_if_running() +
         " has no ULFM; use Open MPI from version 5 on, and start the ranks with `mpirun --with-ft ulfm`";
}

#else

const Ulfm* ulfm() noexcept { return nullptr; }

std::string why_no_ulfm() {
  return "this program was built with an Open MPI without ULFM; build it with Open MPI from version 5 on, and start "
         "the ranks with `mpirun --with-ft ulfm`";
}

#endif

}  // namespace phalanx::mpi::inline PHALANX_MPI_BUILD
