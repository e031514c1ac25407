// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/mpi/survivors.h"

#include <sstream>
#include <string>

#include "framework/backends/mpi/error.h"
#include "framework/backends/mpi/ulfm.h"
#include "framework/base/error.h"

namespace phalanx::mpi::inline PHALANX_MPI_BUILD {
namespace {

// The memory of an agreement, which MPI may still use after a timeout.
struct Agreement {
  int flag = 1;
  MPI_Request request = MPI_REQUEST_NULL;

  // Returns true if the agreement is complete. That ranks have ended meanwhile is an error to MPI, but not here.
  bool is_complete(const std::string& where) {
    int done = 0;
    const int code = MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (done == 0) check(code, where);
    return done != 0;
  }
};

}  // namespace

void await_living_ranks(const Group& group, const std::string& where) {
  const auto agreement = std::make_shared<Agreement>();
  check(ulfm()->begin_agreement(group.comm(), &agreement->flag, &agreement->request), where);
  const Seconds timeout = group.options().timeout;
  if (group.wait_although_broken([&] { return agreement->is_complete(where); }, timeout)) return;
  keep_until_exit(agreement);
  std::ostringstream text;
  text << where << ": waited " << timeout.count()
       << " s for ranks that did not come but have not ended; MPI can leave out only ranks that have ended";
  throw CommError(CommError::Kind::kTimeout, text.str());
}

std::shared_ptr<Group> form_survivors(Group& group, std::uint64_t sequence) {
  const std::string where = group.where(Op::kShrink, sequence);
  const CommError error(CommError::Kind::kPeerLost,
                        "rank " + std::to_string(group.rank()) + " of " + group.options().name + " has called shrink");
  if (!group.revoke(error)) {
    throw CommError(CommError::Kind::kPeerLost, where + ": this group has been shrunk before");
  }
  await_living_ranks(group, where);
  MPI_Comm survivors = MPI_COMM_NULL;
  check(ulfm()->create_of_survivors(group.comm(), &survivors), where);
  auto left = group.derive(survivors, group.options().name + "/survivors");
  await_living_ranks(*left, where);
  return left;
}

}  // namespace phalanx::mpi::inline PHALANX_MPI_BUILD
