// SPDX-License-Identifier: Apache-2.0
#include "launch/rank/local_rank.h"

#include <cstdint>
#include <limits>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>

#include "framework/base/environment.h"
#include "framework/comm/launch/locality.h"
#include "framework/comm/store/rendezvous.h"

namespace phalanx {
namespace {

bool is_known(const LaunchEnvironment& launched) { return launched.knows_local_rank || launched.rank_info.one_host(); }

struct Entry {
  std::int64_t local_rank = 0;  // from the environment; without it, larger than all others
  int rank = 0;
  std::string host{};

  bool before(const Entry& other) const { return std::tie(local_rank, rank) < std::tie(other.local_rank, other.rank); }
};

std::string key_of(int rank) { return "local_rank/" + std::to_string(rank); }

void publish_own(int rank, Store& store) {
  const auto local_rank = environment_int("LOCAL_RANK").value_or(std::numeric_limits<std::int64_t>::max());
  store.set(key_of(rank), std::to_string(local_rank) + " " + host_key());
}

Entry read(int rank, Store& store) {
  Entry entry{.rank = rank};
  std::istringstream text(store.get(key_of(rank)));
  text >> entry.local_rank >> std::ws;
  std::getline(text, entry.host, '\0');
  return entry;
}

}  // namespace

ResolvedLaunch resolve_local_rank(const LaunchEnvironment& launched, Seconds timeout) {
  if (is_known(launched)) return {.launched = launched};
  return resolve_local_rank(launched, rendezvous(launched.rendezvous, timeout));
}

ResolvedLaunch resolve_local_rank(const LaunchEnvironment& launched, Rendezvous met) {
  ResolvedLaunch resolved{.launched = launched, .met = std::move(met)};
  Store& store = *resolved.met->store;
  auto& rank_info = resolved.launched.rank_info;
  publish_own(rank_info.rank, store);
  const Entry mine = read(rank_info.rank, store);
  rank_info.local_rank = rank_info.local_size = 0;
  for (int rank = 0; rank < rank_info.size; ++rank) {
    const Entry other = read(rank, store);
    if (other.host != mine.host) continue;
    ++rank_info.local_size;
    if (other.before(mine)) ++rank_info.local_rank;
  }
  return resolved;
}

}  // namespace phalanx
