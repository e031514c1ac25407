// SPDX-License-Identifier: Apache-2.0
#include "launch/job/agree.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cstdint>

#include "framework/base/config/config.h"
#include "framework/base/config/locate.h"
#include "framework/base/error.h"
#include "framework/comm/texts.h"
#include "framework/kernels/processor.h"
#include "launch/failure/failure.h"

namespace phalanx {

void check_same_config(ExperimentConfig config, Communicator& world) {
  const std::string mine = config::dump(config);
  const bool same = broadcast_text(mine, world) == mine;
  at::Tensor differs = at::zeros({1}, at::kLong).fill_(same ? world.size() : world.rank());
  world.all_reduce(differs, Reduction::kMin).wait();
  const auto rank = differs.item<std::int64_t>();
  if (rank == world.size()) return;
  throw ConfigError("rank " + std::to_string(rank) + " was started with a different config than rank 0: compare " +
                    "their --config files and --set flags (--print_config shows the result)");
}

std::string differing_processors(Communicator& world) {
  const auto mine = kernels::this_processor();
  const auto kinds = all_gather_text(mine.vendor + " " + mine.vectors, world);
  const auto other = std::ranges::find_if(kinds, [&](const auto& kind) { return kind != kinds.front(); });
  if (other == kinds.end()) return "";
  return "The processors of the ranks differ (rank 0: " + kinds.front() + ", rank " +
         std::to_string(other - kinds.begin()) + ": " + *other +
         "), and so do the last bits of their results: the run repeats only on the same hosts";
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
