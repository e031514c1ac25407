// SPDX-License-Identifier: Apache-2.0
#include "launch/testing/thread_ranks.h"

#include <cstddef>
#include <thread>

#include "launch/job/run_rank.h"

namespace phalanx::testing {

std::vector<int> run_as_threads(const Job& job, const RunFolder& folder, int ranks) {
  const SharedByThreads shared = prepare_threads(job, folder);
  std::vector<int> statuses(static_cast<std::size_t>(ranks));
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      statuses[static_cast<std::size_t>(rank)] = run_rank(job, thread_rank(rank, ranks, folder, shared));
    });
  }
  threads.clear();
  return statuses;
}

}  // namespace phalanx::testing
