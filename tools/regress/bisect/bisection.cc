// SPDX-License-Identifier: Apache-2.0
#include "tools/regress/bisect/bisection.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "framework/base/quantile.h"
#include "tools/history/change_points.h"

namespace phalanx::regress {

Bisection::Bisection(std::size_t commits) : unknown_(commits), first_bad_(commits - 1) {}

std::optional<std::size_t> Bisection::next() const {
  const std::size_t middle = last_good_ + (first_bad_ - last_good_) / 2;
  for (std::size_t distance = 0; distance < unknown_.size(); ++distance) {
    for (const std::size_t commit : {middle - std::min(distance, middle), middle + distance}) {
      if (commit > last_good_ && commit < first_bad_ && !unknown_[commit]) return commit;
    }
  }
  return std::nullopt;
}

void Bisection::record(std::size_t commit, Judgement judgement) {
  switch (judgement) {
    case Judgement::kGood:
      last_good_ = commit;
      return;
    case Judgement::kBad:
      first_bad_ = commit;
      return;
    case Judgement::kUnknown:
      unknown_[commit] = true;
      return;
  }
}

int Bisection::steps_left() const { return static_cast<int>(std::bit_width(first_bad_ - last_good_ - 1)); }

bool are_separate(const Samples& ends, double least) {
  const double good = median(ends.good), bad = median(ends.bad);
  if (!(std::abs(bad - good) >= least * std::abs(good)) || bad == good) return false;
  std::size_t agree = 0;
  for (std::size_t i = 0; i < ends.good.size(); ++i) {
    if ((ends.bad[i] - ends.good[i] > 0) == (bad - good > 0)) ++agree;
  }
  return 4 * agree >= 3 * ends.good.size();
}

Judgement judge_commit(const Samples& ends, const std::vector<double>& candidate) {
  const double value = median(candidate);
  const double to_good = std::abs(value - median(ends.good)), to_bad = std::abs(value - median(ends.bad));
  return to_good <= to_bad ? Judgement::kGood : Judgement::kBad;
}

}  // namespace phalanx::regress
