// SPDX-License-Identifier: Apache-2.0
#include "engine/hooks/watching/norm_outliers.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "framework/base/quantile.h"

namespace phalanx {
namespace {

constexpr double kToDeviation = 1.4826;  // from the MAD of a normal distribution

std::vector<double> copy_of(const std::deque<double>& values) { return {values.begin(), values.end()}; }

double score(double value, const std::deque<double>& earlier) {
  const double center = median(copy_of(earlier));
  std::vector<double> distances;
  for (const double one : earlier) distances.push_back(std::abs(one - center));
  return std::abs(value - center) / (kToDeviation * median(distances) + NormOutliers::kFloor);
}

void keep(double value, std::deque<double>& history) {
  history.push_back(value);
  if (history.size() > NormOutliers::kHistory) history.pop_front();
}

// Returns the distance of a rank's logarithm from the median of the other finite ones; 0 if there is no other.
double distance_from_others(const std::vector<double>& logarithms, std::size_t rank) {
  std::vector<double> others;
  for (std::size_t i = 0; i < logarithms.size(); ++i) {
    if (i != rank && std::isfinite(logarithms[i])) others.push_back(logarithms[i]);
  }
  return others.empty() ? 0 : logarithms[rank] - median(others);
}

}  // namespace

NormOutliers::NormOutliers(int ranks, double threshold)
    : tracks_(static_cast<std::size_t>(ranks)), threshold_(threshold) {}

std::vector<NormOutliers::Outlier> NormOutliers::add(const std::vector<double>& norms) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  std::vector<double> logarithms;
  for (const double norm : norms) {
    logarithms.push_back(std::log(std::max(norm, std::numeric_limits<double>::min())));
    if (std::isnan(norm)) logarithms.back() = norm;
  }
  const auto finite = std::ranges::count_if(norms, [](double norm) { return std::isfinite(norm); });
  const bool most_are_finite = 2 * static_cast<std::size_t>(finite) >= norms.size();
  std::vector<Outlier> found;
  for (std::size_t rank = 0; rank < norms.size(); ++rank) {
    Track& track = tracks_[rank];
    const double usual = track.own.empty() ? 0 : std::exp(median(copy_of(track.own)));
    const auto stands_out = [&](double by) {
      found.push_back({.rank = static_cast<int>(rank), .norm = norms[rank], .usual = usual, .score = by});
    };
    if (!std::isfinite(norms[rank])) {
      if (most_are_finite) stands_out(kInfinite);
      continue;
    }
    const double distance = distance_from_others(logarithms, rank);
    if (track.own.size() >= kEnough) {
      double least = score(logarithms[rank], track.own);
      if (norms.size() > 1) least = std::min(least, score(distance, track.distance));
      if (least > threshold_) stands_out(least);
    }
    keep(logarithms[rank], track.own);
    keep(distance, track.distance);
  }
  return found;
}

}  // namespace phalanx
