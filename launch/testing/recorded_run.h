// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "launch/job/replay_rank.h"
#include "launch/testing/launcher_process.h"

namespace phalanx::testing {

/// Records a run on threads of this process, and replays its ranks.
class RecordedRun : public ::testing::Test {
 protected:
  /// `config` is the text of the run's config, which record_run() changes.
  explicit RecordedRun(std::string config) : config_(std::move(config)) {}

  std::string recording() const { return scratch_.path("recording"); }

  /// Returns the ranks' statuses.
  std::vector<int> record_run(int ranks, std::vector<std::string> changes);

  /// Replays a rank up to step `until`; 0: to the end of the recording.
  ReplayResult replay(int rank, const std::vector<std::string>& changes = {}, std::int64_t until = 0);

  Scratch scratch_;

 private:
  std::string config_;
  int replays_ = 0;
};

}  // namespace phalanx::testing
