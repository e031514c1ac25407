// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <vector>

namespace phalanx {

/// Finds the ranks whose gradients have an unusual norm in a step, by robust z-scores.
///
/// The logarithm of a rank's norm is compared with the rank's last kHistory steps, and its distance from the median of
/// the other ranks in the same step with these distances in the last kHistory steps. The z-score of a value x among
/// earlier values is |x - median| / (1.4826 MAD + kFloor), where MAD is the median of their distances from the median.
/// A rank stands out if both z-scores are above the threshold: if all ranks get larger gradients, the second one is
/// small, and if a rank always differs from the others because of its samples, both are. Medians and MAD do not change
/// when a few of the values are wrong. A norm that is not finite stands out if the norms of most ranks are finite.
class NormOutliers {
 public:
  static constexpr std::size_t kHistory = 100;
  static constexpr std::size_t kEnough = 20;  // steps before the first one that is judged
  static constexpr double kFloor = 0.05;      // a norm that is less than 5 % off is never unusual

  NormOutliers(int ranks, double threshold);

  struct Outlier {
    int rank = 0;
    double norm = 0;
    double usual = 0;  // median of the rank's last norms
    double score = 0;  // the smaller z-score; infinite if the norm is not finite
  };

  /// Judges a step and adds it to the history. `norms`: one for each rank, at least 0.
  std::vector<Outlier> add(const std::vector<double>& norms);

 private:
  struct Track {
    std::deque<double> own, distance;  // logarithms; only finite ones
  };

  std::vector<Track> tracks_;  // by rank
  double threshold_;
};

}  // namespace phalanx
