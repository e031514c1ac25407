// SPDX-License-Identifier: Apache-2.0
#include "launch/job/rank_presence.h"

#include <cstddef>
#include <exception>
#include <filesystem>

#include "framework/base/log.h"
#include "framework/observe/hang/collect.h"

namespace phalanx {
namespace {

// Names the buckets that ranks exchange. If a rank updates one of `ranks` equal parts of a bucket, it knows the
// parameters of that part only.
void name_buckets(const std::vector<Slice>& slices, int ranks, CallNames& names) {
  for (std::size_t i = 0; i < slices.size(); ++i) {
    const auto& segments = slices[i].segments;
    std::string name = "bucket " + std::to_string(i + 1) + " of " + std::to_string(slices.size());
    if (ranks > 1) names.add(slices[i].gradients.numel() * ranks, name);
    if (!segments.empty()) name += ": " + segments.front().name;
    if (segments.size() > 1) name += " to " + segments.back().name;
    names.add(slices[i].gradients.numel(), name);
  }
}

}  // namespace

RankPresence::RankPresence(int rank, int size, const std::string& log_folder)
    : rank_(rank), ranks_(size), folder_(std::filesystem::absolute(log_folder).lexically_normal().string()) {
  try {
    page_ = std::make_shared<RankPage>(rank, size, folder_);
    announce(*page_, folder_, rank);
  } catch (const std::exception& error) {
    log_warning() << "other processes cannot see what this rank does: " << error.what();
  }
}

RankPresence::~RankPresence() { withdraw(folder_, rank_); }

void RankPresence::enter(Activity activity) const {
  if (page_ != nullptr) page_->enter(activity);
}

std::function<void(Engine&)> RankPresence::hooks() const {
  return [page = page_, names = names_, ranks = ranks_](Engine& engine) {
    engine.on(Event::kStart, HookPhase::kLast,
              [&engine, names, ranks](State&) { name_buckets(engine.slices(), ranks, *names); });
    if (page == nullptr) return;
    const auto enters = [&](Event event, HookPhase phase, Activity activity) {
      engine.on(event, phase, [page, activity](State&) { page->enter(activity); });
    };
    enters(Event::kStartEpoch, HookPhase::kLast, Activity::kLoading);
    enters(Event::kSample, HookPhase::kFirst, Activity::kForward);
    enters(Event::kForwardCriterion, HookPhase::kLast, Activity::kBackward);
    enters(Event::kBackward, HookPhase::kLast, Activity::kUpdate);
    engine.on(Event::kUpdate, HookPhase::kFirst, [page](State& state) {
      page->set_step(state.step);
      page->enter(Activity::kHooks);
    });
    // These hooks are the last ones of their phases, so each activity covers the phase after its own.
    for (const Event event : {Event::kUpdate, Event::kEndEpoch}) {
      enters(event, HookPhase::kMeasure, Activity::kEvaluation);
      enters(event, HookPhase::kEvaluate, Activity::kHooks);
      enters(event, HookPhase::kAdapt, Activity::kCheckpoint);
      enters(event, HookPhase::kCheckpoint, Activity::kHooks);
    }
    enters(Event::kUpdate, HookPhase::kLast, Activity::kLoading);
    enters(Event::kEnd, HookPhase::kAdapt, Activity::kCheckpoint);
    enters(Event::kEnd, HookPhase::kLast, Activity::kEnding);
  };
}

}  // namespace phalanx
