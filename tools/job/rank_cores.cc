#include "tools/job/rank_cores.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "framework/base/cores.h"
#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/base/text.h"
#include "tools/launch/core_shares.h"

namespace phalanx {
namespace {

std::vector<int> bind(const std::string& to, const Place& place) {
  const auto cores = physical_cores(allowed_cores());
  try {
    const auto mine = to == "core" ? own_cores(cores, place.local_rank, place.local_size)
                                   : own_nodes(cores, place.local_rank, place.local_size);
    if (!stay_on_cores(mine)) throw ConfigError("the kernel refuses");
    return mine;
  } catch (const ConfigError& error) {
    throw ConfigError("launch.bind_to: " + to + ", on " + host_name() + ": " + error.what() +
                      "; start fewer ranks there, or take launch.bind_to: none");
  }
}

std::string list(const std::vector<int>& cores) {
  std::vector<std::string> numbers;
  for (const int core : cores) numbers.push_back(std::to_string(core));
  return join(numbers, ",");
}

// Cores that ranks share are shared out to them; of those that a launcher has given a rank alone it takes all.
int usual_threads(int ranks, CoresFrom from) {
  const int online = static_cast<int>(std::thread::hardware_concurrency());
  const int known = static_cast<int>(allowed_cores().size());
  const int allowed = known > 0 ? known : online;
  return std::max(1, from == CoresFrom::kUs ? allowed / ranks : std::min(online / ranks, allowed));
}

}  // namespace

std::string take_cores(const LaunchConfig& launch, const Place& place, CoresFrom from) {
  int threads = usual_threads(place.local_size, from);
  std::string bound;
  if (launch.bind_to != "none") {
    const auto mine = bind(launch.bind_to, place);
    if (launch.bind_to == "core") threads = static_cast<int>(mine.size());
    bound = ", bound to cores " + list(mine);
  }
  if (launch.threads > 0) threads = static_cast<int>(launch.threads);
  at::set_num_threads(threads);
  return "computes with " + std::to_string(threads) + (threads == 1 ? " thread" : " threads") + bound;
}

}  // namespace phalanx
