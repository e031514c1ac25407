// SPDX-License-Identifier: Apache-2.0
#include "phalanx/launch.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <stdexcept>

#include "framework/base/cores.h"
#include "launch/failure/verdict.h"
#include "launch/local/launch_local.h"
#include "launch/temporary_folder.h"

namespace phalanx {
namespace {

// A child of fork() has no other thread of its parent, so locks that these hold would stay locked.
void require_one_thread() {
  using Entry = std::filesystem::directory_iterator;
  const auto threads = std::distance(Entry("/proc/self/task"), Entry());
  if (threads == 1) return;
  throw std::logic_error("launch: this process has " + std::to_string(threads) +
                         " threads, so it cannot be forked; call launch() before anything starts threads, or set "
                         "OMP_NUM_THREADS=1");
}

// Throws an Error with the first cause if the ranks have not all ended well.
void require_success(const Verdict& verdict, int ranks) {
  if (const auto& cause = verdict.cause) {
    throw Error("rank " + std::to_string(cause->rank) + " of " + std::to_string(ranks) + ": " + cause->message);
  }
  if (verdict.status != 0) {
    throw Error("launch: the ranks were interrupted (status " + std::to_string(verdict.status) + ")");
  }
}

}  // namespace

void launch(int ranks, const std::function<void(World& world)>& body, const LaunchOptions& options) {
  if (ranks < 1) throw std::invalid_argument("launch: " + std::to_string(ranks) + " ranks");
  require_one_thread();
  const TemporaryFolder failures;
  const int threads = std::max(1, std::min(at::get_num_threads(), usable_cores() / ranks));
  const auto run_rank = [&](int) {
    at::set_num_threads(threads);
    World world = init({.backend = options.backend, .timeout = options.timeout});
    body(world);
    return 0;
  };
  require_success(run_local({.ranks = ranks, .log_folder = failures.path(), .redirect_output = false}, run_rank),
                  ranks);
}

}  // namespace phalanx
