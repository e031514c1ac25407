// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace phalanx::history {

/// A night of a series: the values of one metric of one case.
struct Night {
  std::string commit;
  std::vector<double> values;   // of repeated runs, at least one; their median represents the night
  std::int64_t session = 0;     // number in the database
  std::int64_t started_at = 0;  // seconds since 1970 (UTC)
};

/// Limits for what counts as a change.
struct ChangeLimits {
  double false_alarms = 0.001;  // probability that a series without a change is reported to have one; 0 < p < 1
  double least = 0.01;          // smallest change of the median, relative to the median before
};

/// A night from which on the values of a series are different.
struct ChangePoint {
  std::size_t night = 0;      // index of the first night with the new values
  std::string before, after;  // commits of the last night with the old values, and of the first with the new ones
  double median_before = 0, median_after = 0;  // of the nights from the previous change to this one, and to the next
  double probability = 0;                      // that nights without a change, in any order, differ as clearly

  /// Returns the change relative to median_before: -0.07 if the values fell by 7 %. Infinite if median_before is 0.
  double relative() const;
};

/// The number of nights that must lie on each side of a change point.
inline constexpr std::size_t kFewestNights = 3;

/// Finds the nights at which the level of a series changed, oldest first: E-Divisive (Matteson and James, A
/// Nonparametric Approach for Multiple Change Point Analysis of Multivariate Data, JASA 109, 2014), which MongoDB uses
/// for nightly benchmarks (Daly et al., The Use of Change Point Detection to Identify Software Performance Regressions
/// in a Continuous Integration System, ICPE 2020).
///
/// The night that divides the series best is the one with the largest energy distance between the values before it and
/// those from it on, up to any later night. The division is kept if at most a share `false_alarms` of random orders of
/// the same values can be divided as well; each part is then divided in turn. So whatever the distribution of the
/// noise, a series of independent nights without a change has a change point with a probability of at most
/// `false_alarms`. Changes smaller than `least` are discarded at the end.
///
/// `nights` are in the order of time. The result is the same on every machine. Takes time quadratic in the number of
/// nights, and 2,000 times as long for each change as for a series without one.
std::vector<ChangePoint> find_change_points(const std::vector<Night>& nights, const ChangeLimits& limits = {});

/// Returns a sentence such as "throughput of shakespeare_gpt_tp2 fell 7.0 % between commits 0123abcd4567 and
/// 89abcdef0123 (1500 to 1395)", where `subject` is "throughput of shakespeare_gpt_tp2".
std::string describe(const std::string& subject, const ChangePoint& point);

}  // namespace phalanx::history
