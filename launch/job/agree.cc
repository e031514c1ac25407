// SPDX-License-Identifier: Apache-2.0
#include "launch/job/agree.h"

#include <algorithm>

#include "framework/base/config/locate.h"
#include "framework/base/error.h"
#include "framework/comm/texts.h"
#include "framework/kernels/processor.h"
#include "launch/failure/failure.h"

namespace phalanx {

std::string differing_processors(Communicator& world) {
  const auto mine = kernels::this_processor();
  const auto kinds = all_gather_text(mine.vendor + " " + mine.vectors, world);
  const auto other = std::ranges::find_if(kinds, [&](const auto& kind) { return kind != kinds.front(); });
  if (other == kinds.end()) return "";
  return "The processors of the ranks differ (rank 0: " + kinds.front() + ", rank " +
         std::to_string(other - kinds.begin()) + ": " + *other +
         "), and so do the last bits of their results: the run repeats only on the same hosts, and replicas are not "
         "compared unless replica_check.repair is set";
}

ClaimedFolder agree_on_folder(const Job& job, Communicator& world) {
  ClaimedFolder prepared;
  std::string problem;
  if (world.rank() == 0) {
    try {
      prepared = prepare_folder(job);
      remove_failures(prepared.folder.logs());
    } catch (const ConfigError& error) {
      problem = config::located(error, job.sources).what();
    } catch (const Error& error) {
      problem = error.what();
    }
  }
  problem = broadcast_text(problem, world);
  if (!problem.empty()) throw ConfigError(problem);
  prepared.folder = RunFolder(broadcast_text(prepared.folder.path(), world));
  return prepared;
}

}  // namespace phalanx
