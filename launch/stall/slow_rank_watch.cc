// SPDX-License-Identifier: Apache-2.0
#include "launch/stall/slow_rank_watch.h"

#include <algorithm>
#include <utility>

#include "framework/observe/hang/explain.h"

namespace phalanx {
namespace {

constexpr int kLooksInARow = 3;
constexpr int kRanksPerLook = 16;    // the ranks of which a look is as cheap as it should be
constexpr double kLeastShare = 0.4;  // of the time: less is not worth a line that nobody has asked for

double interval_for(int size, Seconds within) {
  const int times = (size + kRanksPerLook - 1) / kRanksPerLook;
  return within.count() / (kLooksInARow + 1) * times;
}

}  // namespace

SlowRankWatch::SlowRankWatch(int size, Seconds within, std::function<JobPicture()> picture)
    : size_(size), interval_(interval_for(size, within)), picture_(std::move(picture)) {}

bool SlowRankWatch::can_know_all(const JobPicture& job) const {
  const bool elsewhere = std::ranges::any_of(
      job.ranks, [](const RankPicture& rank) { return rank.state == RankPicture::Process::kUnknown; });
  return size_ > 1 && !elsewhere;
}

std::optional<std::string> SlowRankWatch::look(double now) {
  if (ended_ || now < next_) return std::nullopt;
  next_ = now + interval_;
  const JobPicture job = picture_();
  ended_ = !can_know_all(job);
  const auto slow = ended_ ? std::nullopt : slow_rank(job, kLeastShare);
  in_a_row_ = slow && slow == suspected_ ? in_a_row_ + 1 : slow ? 1 : 0;
  suspected_ = slow;
  if (in_a_row_ < kLooksInARow || !named_.insert(*slow).second) return std::nullopt;
  const RankPicture& rank = *job.find(*slow);
  return "rank " + std::to_string(rank.rank) + " is slow: the others regularly wait for it (process " +
         std::to_string(rank.process) + " on " + rank.host +
         "); the times of each rank at the end of the run say in which phase of a step";
}

}  // namespace phalanx
