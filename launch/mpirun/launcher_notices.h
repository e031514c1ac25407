// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launch/failure/verdict.h"
#include "launch/mpirun/hydra_notices.h"
#include "launch/mpirun/mpirun.h"

namespace phalanx {

/// Separates the messages of an mpirun in its two outputs from what the ranks write. Open MPI uses standard error only.
class LauncherNotices {
 public:
  explicit LauncherNotices(const Mpirun& mpirun) : hydra_(mpirun.is_hydra()) {}

  bool from_hydra() const { return hydra_; }

  /// Take the next piece of an output, and return what came from ranks.
  std::string feed_output(std::string_view piece) { return hydra_ ? output_.feed(piece) : std::string(piece); }
  std::string feed_errors(std::string_view piece) { return hydra_ ? errors_.feed(piece) : mpirun_.feed(piece); }

  /// Return what was held back because a line was incomplete.
  std::string finish_output() { return output_.finish(); }
  std::string finish_errors() { return hydra_ ? errors_.finish() : mpirun_.finish(); }

  /// Returns the messages so far.
  std::vector<std::string> texts() const {
    if (!hydra_) return mpirun_.notices();
    auto all = output_.notices();
    all.insert(all.end(), errors_.notices().begin(), errors_.notices().end());
    return all;
  }

  /// Returns the ends of ranks that these messages report.
  std::vector<RankEnd> ends() const { return hydra_ ? rank_ends_in_hydra(texts()) : rank_ends_in(texts()); }

 private:
  const bool hydra_;
  HydraNotices output_, errors_;
  MpirunNotices mpirun_;
};

}  // namespace phalanx
