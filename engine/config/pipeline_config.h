// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/base/config/visitor.h"
#include "framework/partition/pipeline/schedule.h"

namespace phalanx {

/// Section `pipeline` of a config: the division of a model by mesh.pipe, and the schedule of its ranks.
struct PipelineConfig {
  std::string schedule = "1f1b";
  std::int64_t micro_batches = 0;
  std::int64_t stages_per_rank = 1;
  std::int64_t memory_limit = 0;
  std::vector<std::string> cut;

  template <class V>
  void visit(V& v) {
    v("schedule", schedule, "order of forwards and backwards", config::one_of(pipeline::schedule_names()));
    v("micro_batches", micro_batches,
      "parts in which a rank's share of a batch goes through the pipeline; 0: four for each rank of mesh.pipe, or less "
      "where there are fewer samples",
      config::between(0, 65536));
    v("stages_per_rank", stages_per_rank, "stages that each rank has, with schedules that interleave them",
      config::between(1, 64));
    v("memory_limit", memory_limit,
      "micro-batches whose activations a rank may hold, with schedule: zero_bubble; 0: as many as with 1f1b",
      config::between(0, 65536));
    v("cut", cut, "first block of each stage except the first; empty: stages of equal cost");
  }

  /// Returns options for make_schedule() with `count` micro-batches on `ranks` ranks, without the costs, which the
  /// caller sets.
  pipeline::ScheduleOptions options(std::int64_t ranks, int count) const {
    return {.ranks = static_cast<int>(ranks),
            .stages_per_rank = static_cast<int>(stages_per_rank),
            .micro_batches = count,
            .memory_limit = static_cast<int>(memory_limit)};
  }
};

}  // namespace phalanx
