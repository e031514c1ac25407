// SPDX-License-Identifier: Apache-2.0
#include "framework/partition/pipeline/schedule.h"

#include <algorithm>
#include <array>

#include "framework/base/error.h"
#include "framework/partition/pipeline/makers.h"

namespace phalanx::pipeline {
namespace {

struct Maker {
  const char* name;
  Schedule (*make)(const ScheduleOptions& options);
  bool one_stage;  // per rank
};

constexpr std::array kMakers{
    Maker{"gpipe", make_gpipe, true},
    Maker{"1f1b", make_1f1b, true},
    Maker{"interleaved", make_interleaved, false},
    Maker{"zb_h1", make_zb_h1, true},
    Maker{"zero_bubble", make_zero_bubble, true},
    Maker{"dualpipe", make_dualpipe, true},
};

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

std::vector<std::string> schedule_names() {
  std::vector<std::string> names;
  for (const auto& maker : kMakers) names.emplace_back(maker.name);
  return names;
}

Schedule make_schedule(const std::string& name, const ScheduleOptions& options) {
  const auto found = std::ranges::find(kMakers, name, [](const Maker& maker) { return std::string(maker.name); });
  if (found == kMakers.end()) {
    std::string names;
    for (const auto& maker : kMakers) names += (names.empty() ? "" : ", ") + std::string(maker.name);
    throw ConfigError("schedule: \"" + name + "\" is not known; known: " + names);
  }
  const auto refuse_if = [&](bool wrong, const std::string& why) {
    if (wrong) throw ConfigError("schedule: " + name + " " + why);
  };
  refuse_if(options.ranks < 1 || options.micro_batches < 1 || options.stages_per_rank < 1,
            "needs at least one rank, micro-batch and stage per rank");
  refuse_if(options.memory_limit < 0, "has memory_limit: " + std::to_string(options.memory_limit) +
                                          "; the least is 0, which means as much as 1f1b");
  refuse_if(options.memory_limit > 0 && name != "zero_bubble",
            "does not support memory_limit, since it holds what it needs; leave it out, or use zero_bubble");
  refuse_if(found->one_stage && options.stages_per_rank != 1,
            "has one stage for each rank; with several, use interleaved");
  return found->make(options);
}

}  // namespace phalanx::pipeline
