#include "framework/parallel/pipeline/schedule.h"

#include <algorithm>

#include "framework/base/error.h"

namespace phalanx::pipeline {
namespace {

// Forwards before the first backward of a rank.
int warm_up(const std::string& name, const ScheduleOptions& options, int rank) {
  if (name == "gpipe") return options.micro_batches;
  return std::min(options.micro_batches, options.ranks - rank);
}

}  // namespace

int Schedule::rank_of(int stage, int micro_batch) const {
  for (int rank = 0; rank < ranks; ++rank) {
    const auto& own = actions[static_cast<std::size_t>(rank)];
    if (std::ranges::count(own, Action{Action::Kind::kForward, stage, micro_batch}) > 0) return rank;
  }
  throw Error("no rank computes micro-batch " + std::to_string(micro_batch) + " on stage " + std::to_string(stage));
}

std::vector<int> Schedule::stages_of(int rank) const {
  std::vector<int> of;
  for (const auto& action : actions[static_cast<std::size_t>(rank)]) of.push_back(action.stage);
  std::ranges::sort(of);
  of.erase(std::unique(of.begin(), of.end()), of.end());
  return of;
}

Schedule make_schedule(const std::string& name, const ScheduleOptions& options) {
  if (name != "gpipe" && name != "1f1b") throw ConfigError("schedule: \"" + name + "\" is not known");
  if (options.stages_per_rank != 1) throw ConfigError("schedule: " + name + " has one stage for each rank");
  Schedule schedule{.name = name,
                    .ranks = options.ranks,
                    .stages = options.ranks,
                    .micro_batches = options.micro_batches,
                    .actions = {}};
  for (int rank = 0; rank < options.ranks; ++rank) {
    auto& own = schedule.actions.emplace_back();
    const int ahead = warm_up(name, options, rank);
    for (int i = 0; i < options.micro_batches + ahead; ++i) {
      if (i < options.micro_batches) own.push_back({Action::Kind::kForward, rank, i});
      if (i + 1 >= ahead && i + 1 - ahead < options.micro_batches) {
        own.push_back({Action::Kind::kBackward, rank, i + 1 - ahead});
      }
    }
  }
  return schedule;
}

}  // namespace phalanx::pipeline
