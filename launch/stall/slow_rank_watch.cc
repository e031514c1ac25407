// SPDX-License-Identifier: Apache-2.0
#include "launch/stall/slow_rank_watch.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include "framework/observe/hang/explain.h"

namespace phalanx {
namespace {

constexpr int kLooksInARow = 3;
constexpr int kRanksPerLook = 16;    // the ranks of which a look is as cheap as it should be
constexpr double kLeastShare = 0.4;  // of the time: less is not worth a line on the console

double interval_for(int size, Seconds within) {
  const int times = (size + kRanksPerLook - 1) / kRanksPerLook;
  return within.count() / (kLooksInARow + 1) * times;
}

bool of_all_ranks(const PicturedOperation& operation) {
  return operation.group == "world" && operation.is_collective();
}

}  // namespace

SlowRankWatch::SlowRankWatch(int size, Seconds within, std::function<JobPicture()> picture)
    : size_(size), interval_(interval_for(size, within)), picture_(std::move(picture)) {}

bool SlowRankWatch::can_know_all(const JobPicture& job) const {
  const bool elsewhere = std::ranges::any_of(
      job.ranks, [](const RankPicture& rank) { return rank.state == RankPicture::Process::kUnknown; });
  return size_ > 1 && !elsewhere;
}

// Removes the operations that were judged before. Returns the sequence number of the last one that all ranks have
// completed, or 0 if the operations that are left are too few for a judgement.
std::uint64_t SlowRankWatch::keep_new_operations(JobPicture& job) const {
  if (static_cast<int>(job.ranks.size()) < job.size) return 0;
  std::uint64_t last = std::numeric_limits<std::uint64_t>::max();
  for (auto& rank : job.ranks) {
    std::erase_if(rank.operations, [&](const PicturedOperation& operation) {
      return of_all_ranks(operation) && operation.sequence <= judged_;
    });
    std::size_t completed = 0;
    std::uint64_t newest = 0;
    for (const auto& operation : rank.operations) {
      if (!of_all_ranks(operation) || operation.finished == 0) continue;
      ++completed;
      newest = std::max(newest, operation.sequence);
    }
    if (completed < kLeastOperations) return 0;
    last = std::min(last, newest);
  }
  return last;
}

std::optional<std::string> SlowRankWatch::look(double now) {
  if (ended_ || now < next_) return std::nullopt;
  next_ = now + interval_;
  JobPicture job = picture_();
  ended_ = !can_know_all(job);
  const std::uint64_t last = keep_new_operations(job);
  if (!ended_ && last == 0) return std::nullopt;
  judged_ = last;
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
