// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/testing/run_hybrid.h"

#include <gtest/gtest.h>

#include <exception>
#include <thread>
#include <vector>

#include "framework/backends/hybrid/connect.h"

namespace phalanx::testing {

void run_hybrid(const std::string& hosts, const HybridBody& body,
                const std::function<std::vector<Key>(int rank)>& levels) {
  const Seconds timeout(60);
  const StorePtr store = make_hash_store(timeout);
  const int size = static_cast<int>(hosts.size());
  const auto run_rank = [&](int rank) {
    const RankInfo rank_info{.rank = rank, .size = size, .local_rank = rank, .local_size = size};
    try {
      const auto flat = Backends::Choice("inproc").make({rank_info, make_prefix_store("flat", store), timeout});
      const ConnectOptions options{
          .rank_info = rank_info, .store = store, .timeout = timeout, .progress_thread = {}, .levels = levels(rank)};
      const auto world = hybrid::connect({.intra = "inproc", .inter = "inproc"}, options, std::string(1, hosts[rank]));
      body(world, flat);
    } catch (const std::exception& error) {
      ADD_FAILURE() << "rank " << rank << " of " << hosts << ": " << error.what();
    }
  };
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < size; ++rank) threads.emplace_back(run_rank, rank);
}

}  // namespace phalanx::testing
