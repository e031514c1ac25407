// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "engine/engine.h"
#include "framework/observe/hang/rank_page.h"
#include "launch/stall/call_names.h"

namespace phalanx {

/// Shows other processes what a rank does, for as long as this object lives: the page of the rank, and the file that
/// says where it is (framework/observe/hang). A run does not fail because the system refuses either of them; the log
/// says so.
class RankPresence {
 public:
  /// Belongs to the calling thread, which is that of the rank. `log_folder` is the log folder of the run.
  RankPresence(int rank, int size, const std::string& log_folder);
  ~RankPresence();
  RankPresence(const RankPresence&) = delete;
  RankPresence& operator=(const RankPresence&) = delete;

  /// Returns null if the system has refused the page.
  RankPage* page() const { return page_.get(); }

  /// The names of the buckets, once training has started.
  const std::shared_ptr<CallNames>& names() const { return names_; }

  void enter(Activity activity) const;

  /// Returns a function that adds the hooks that keep the page up to date. They must be added after all other hooks.
  /// The page must outlive the engine's training.
  std::function<void(Engine&)> hooks() const;

 private:
  int rank_, ranks_;
  std::string folder_;  // absolute, since other processes read it
  std::shared_ptr<RankPage> page_;
  std::shared_ptr<CallNames> names_ = std::make_shared<CallNames>();
};

}  // namespace phalanx
