// SPDX-License-Identifier: Apache-2.0
#include "launch/local/rank_threads.h"

#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace phalanx {

void run_rank_threads(int ranks, const std::function<void(const RankInfo& rank_info)>& body) {
  std::mutex mutex;
  std::exception_ptr first;
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&, rank] {
        try {
          body({.rank = rank, .size = ranks, .local_rank = rank, .local_size = ranks});
        } catch (...) {
          const std::lock_guard lock(mutex);
          if (!first) first = std::current_exception();
        }
      });
    }
  }
  if (first) std::rethrow_exception(first);
}

}  // namespace phalanx
