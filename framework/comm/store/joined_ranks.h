// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "framework/comm/store/store.h"

namespace phalanx {

/// A rank that has reached the store of its job.
struct JoiningRank {
  std::string store;   // name of the store, for messages
  int rank = 0;        // of this process
  int ranks = 1;       // of the job
  bool waits = false;  // waits until all ranks have joined
  bool unique = true;  // no other process may join with the same rank; false if an earlier attempt left its traces
  std::string note{};  // about the ranks that have joined, for messages: "with this job's secret"
  Seconds timeout{600};
};

/// Records in the store that a rank has joined. One rank waits for all others, so that it can tell which never came:
/// otherwise each user of the store would wait at another key. Throws CommError: kTimeout with the ranks that are
/// missing, and kSystem if another process has joined with the same rank.
void join_ranks(Store& store, const JoiningRank& joining);

}  // namespace phalanx
