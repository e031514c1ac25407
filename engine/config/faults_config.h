// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "framework/base/config/visitor.h"

namespace phalanx {

/// Section `faults` of a config: what the ranks that are left do when one is lost.
struct FaultsConfig {
  std::string on_lost_rank = "stop";
  double lost_after = 5;
  std::int64_t min_ranks = 1;
  double wait = 60;
  std::int64_t copies_every = 10;
  std::string batch = "global";
  std::int64_t replacements = 10;
  std::int64_t max_ranks = 0;

  template <class V>
  void visit(V& v) {
    v("on_lost_rank", on_lost_rank,
      "what the others do when a rank is killed, crashes or throws; stop: end, shrink: go on without it, "
      "replace: go on without it until a new process has taken its place",
      config::one_of({"stop", "shrink", "replace"}));
    v("lost_after", lost_after,
      "with shrink and replace: seconds for which a rank may be stopped (SIGSTOP) before it is killed",
      config::above(0));
    v("min_ranks", min_ranks, "with shrink and replace: with fewer ranks, the run is saved and ends with status 5",
      config::at_least(1));
    v("wait", wait,
      "with replace: seconds for which fewer ranks than min_ranks wait for new processes before the run is saved",
      config::at_least(0));
    v("copies_every", copies_every,
      "with shrink and replace: steps between copies, in the memory of another rank, of what only one rank has; 0: "
      "none",
      config::at_least(0));
    v("batch", batch,
      "with shrink and replace: what stays the same when the number of ranks changes; global: the samples of a step "
      "over all ranks, per_rank: those of each rank",
      config::one_of({"global", "per_rank"}));
    v("replacements", replacements, "with replace: processes that are started in all for lost ranks",
      config::at_least(1));
    v("max_ranks", max_ranks,
      "with replace: hosts may join the running job (train --join) up to this number of ranks; 0: none may",
      config::between(0, 4096));
  }

  /// Returns true if the others go on without a lost rank, be it for good or until it is replaced.
  bool shrinks() const { return on_lost_rank != "stop"; }

  bool replaces() const { return on_lost_rank == "replace"; }

  /// Returns true if hosts may join a job that has begun with `ranks` ranks.
  bool lets_join(std::int64_t ranks) const { return replaces() && max_ranks > ranks; }

  bool keeps_batch_per_rank() const { return shrinks() && batch == "per_rank"; }
};

}  // namespace phalanx
