// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/store/joined_ranks.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/text.h"
#include "framework/comm/store/polling.h"

namespace phalanx {
namespace {

std::string joined_key(int rank) { return "phalanx/joined/" + std::to_string(rank); }

// Returns "rank 1 is missing" or "ranks 1, 2, 5 are missing", with at most some of the ranks.
std::string missing_ranks(Store& store, int ranks) {
  constexpr std::size_t kMost = 16;
  std::vector<std::string> missing;
  for (int rank = 0; rank < ranks; ++rank) {
    if (store.add(joined_key(rank), 0) == 0) missing.push_back(std::to_string(rank));
  }
  if (missing.size() == 1) return "rank " + missing[0] + " is missing";
  const std::size_t more = missing.size() - std::min(missing.size(), kMost);
  missing.resize(missing.size() - more);
  return "ranks " + join(missing, ", ") + (more > 0 ? " and " + std::to_string(more) + " more" : "") + " are missing";
}

}  // namespace

void join_ranks(Store& store, const JoiningRank& joining) {
  const std::string key = "phalanx/joined";
  const int ranks = joining.ranks;
  if (store.add(joined_key(joining.rank), 1) > 1 && joining.unique) {
    throw CommError(CommError::Kind::kSystem, joining.store + ": another process has joined as rank " +
                                                  std::to_string(joining.rank) +
                                                  "; give each process a rank of its own (RANK, --rank)");
  }
  auto joined = store.add(key, 1);
  if (!joining.waits) return;
  const auto all_here = [&] { return joined >= ranks || (joined = store.add(key, 0)) >= ranks; };
  if (poll_until(all_here, joining.timeout)) return;
  throw CommError(CommError::Kind::kTimeout, joining.store + ": waited " + in_seconds(joining.timeout) + ", but only " +
                                                 std::to_string(joined) + " of " + std::to_string(ranks) +
                                                 " ranks have joined" + joining.note + "; " +
                                                 missing_ranks(store, ranks));
}

}  // namespace phalanx
