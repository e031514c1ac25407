// SPDX-License-Identifier: Apache-2.0
#include "launch/job/bind_cores.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "framework/base/cores.h"
#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "launch/rank/core_shares.h"

namespace phalanx {
namespace {

int online_cores() { return static_cast<int>(std::thread::hardware_concurrency()); }

// Returns the cores of this rank, out of the cores shared by the ranks of its host.
std::vector<int> choose(const std::string& to, const RankInfo& rank_info, CoresFrom from) {
  const auto allowed = allowed_cores();
  if (allowed.empty()) throw ConfigError("the kernel does not report which cores this process may use");
  if (from == CoresFrom::kLauncher && static_cast<int>(allowed.size()) < online_cores()) {
    throw ConfigError("the launcher, or a container, has already restricted this rank to cores " +
                      describe_cores(allowed) + ", perhaps exclusively");
  }
  const auto cores = physical_cores(allowed);
  return to == "core" ? own_cores(cores, rank_info.local_rank, rank_info.local_size)
                      : own_nodes(cores, rank_info.local_rank, rank_info.local_size);
}

std::vector<int> bind(const std::string& to, const RankInfo& rank_info, CoresFrom from) {
  try {
    auto mine = choose(to, rank_info, from);
    if (!stay_on_cores(mine)) throw ConfigError("the kernel refuses cores " + describe_cores(mine));
    return mine;
  } catch (const ConfigError& error) {
    throw ConfigError("launch.bind_to: " + to + ", on " + host_name() + ": " + error.what() +
                      "; use launch.bind_to: none");
  }
}

// Returns the number of threads without other settings. Cores shared by ranks are divided among them. Cores that a
// launcher may have given to this rank alone are all used, but no more than the rank's part of the host.
int default_threads(int ranks, CoresFrom from) {
  const int usable = usable_cores();
  return std::max(1, from == CoresFrom::kPhalanx ? usable / ranks : std::min(online_cores() / ranks, usable));
}

// Returns the limit per process set by the user or a launcher such as torchrun: the first entry of OpenMP's list, if it
// is a number.
int max_threads() {
  constexpr int kAny = std::numeric_limits<int>::max();
  const auto list = environment("OMP_NUM_THREADS").value_or("");
  int most = kAny;
  std::from_chars(list.data(), list.data() + list.size(), most);
  return most > 0 ? most : kAny;
}

}  // namespace

std::string bind_cores(const LaunchConfig& launch, const RankInfo& rank_info, CoresFrom from) {
  int threads = default_threads(rank_info.local_size, from);
  std::string bound;
  if (launch.bind_to != "none") {
    const auto mine = bind(launch.bind_to, rank_info, from);
    threads =
        launch.bind_to == "core" ? static_cast<int>(mine.size()) : std::min(threads, static_cast<int>(mine.size()));
    bound = ", bound to cores " + describe_cores(mine);
  }
  threads = launch.threads > 0 ? static_cast<int>(launch.threads) : std::min(threads, max_threads());
  at::set_num_threads(threads);
  return "computes with " + std::to_string(threads) + (threads == 1 ? " thread" : " threads") + bound;
}

}  // namespace phalanx
