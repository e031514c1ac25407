// SPDX-License-Identifier: Apache-2.0
#include "tools/history/change_points.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "framework/base/quantile.h"
#include "framework/base/random.h"
#include "framework/base/text.h"

namespace phalanx::history {
namespace {

constexpr std::uint64_t kSeed = 20140101;
constexpr int kLeastOrders = 1999;  // number of random orders; more if false_alarms is below one of them

struct Division {
  std::size_t at = 0;  // index of the first value of the second part
  double distance = 0;
};

double pairs(double count) { return count * (count - 1) / 2; }

/// Finds the best division of series of one length.
class Divider {
 public:
  explicit Divider(std::size_t count) : count_(count), sums_((count + 1) * (count + 1)) {}

  // Returns the `at` for which values [0, at) and [at, end) have the largest energy distance, whatever `end` is
  // (the estimator of Matteson and James, with exponent 1). With `end` at the end of the series alone, a level that
  // returns to the old one would hide both of its changes.
  Division best(std::span<const double> values) {
    set_sums(values);
    Division best;
    for (std::size_t end = 2 * kFewestNights; end <= count_; ++end) {
      for (std::size_t at = kFewestNights; at + kFewestNights <= end; ++at) {
        const double distance = distance_of(at, end);
        if (distance > best.distance) best = {at, distance};
      }
    }
    return best;
  }

 private:
  double& sum(std::size_t rows, std::size_t columns) { return sums_[rows * (count_ + 1) + columns]; }

  // Makes sum(i, k) the sum of the distances between the first i and the first k values.
  void set_sums(std::span<const double> values) {
    for (std::size_t i = 0; i < count_; ++i) {
      double row = 0;
      for (std::size_t k = 0; k < count_; ++k) {
        row += std::abs(values[i] - values[k]);
        sum(i + 1, k + 1) = sum(i, k + 1) + row;
      }
    }
  }

  // Returns the energy distance of values [0, at) and [at, end), weighted by their numbers.
  double distance_of(std::size_t at, std::size_t end) {
    const double first = sum(at, at), both = sum(at, end);
    const double within_first = first / 2, between = both - first,
                 within_second = (sum(end, end) - 2 * both + first) / 2;
    const auto before = static_cast<double>(at), after = static_cast<double>(end - at);
    const double distance =
        2 * between / (before * after) - within_first / pairs(before) - within_second / pairs(after);
    return distance * before * after / (before + after);
  }

  const std::size_t count_;
  std::vector<double> sums_;  // the first row and column stay 0
};

// Shuffles by Fisher and Yates, with numbers that depend only on `seed`.
void shuffle(std::vector<double>& values, std::uint64_t seed) {
  for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[mix(seed, i) % i]);
}

// Returns the p-value of the permutation test for a division of these values, or nullopt once it is known to be above
// `limit`.
std::optional<double> probability_of(const Division& division, std::span<const double> values, double limit,
                                     Divider& divider) {
  // Rounding makes the distance of an equally good order slightly larger or smaller.
  const double as_clear = division.distance * (1 - 1e-9);
  const int orders = std::max(kLeastOrders, static_cast<int>(std::ceil(1 / limit)) - 1);
  const double most = limit * (orders + 1) * (1 + 1e-9);
  std::vector<double> order(values.begin(), values.end());
  int as_good = 1;  // the actual order
  for (int i = 0; i < orders; ++i) {
    shuffle(order, mix(kSeed, static_cast<std::uint64_t>(i)));
    if (divider.best(order).distance >= as_clear) ++as_good;
    if (as_good > most) return std::nullopt;
  }
  return as_good / (orders + 1.0);
}

// Appends the change points among values[begin, end), in order.
void divide(const std::vector<double>& values, std::size_t begin, std::size_t end, double limit,
            std::vector<ChangePoint>& points) {
  const auto part = std::span(values).subspan(begin, end - begin);
  if (part.size() < 2 * kFewestNights) return;
  Divider divider(part.size());
  const Division division = divider.best(part);
  if (division.distance <= 0) return;
  const auto probability = probability_of(division, part, limit, divider);
  if (!probability) return;
  divide(values, begin, begin + division.at, limit, points);
  points.push_back({.night = begin + division.at,
                    .before = {},
                    .after = {},
                    .median_before = 0,
                    .median_after = 0,
                    .probability = *probability});
  divide(values, begin + division.at, end, limit, points);
}

// Sets the medians of the values between neighbouring change points.
void set_medians(std::vector<ChangePoint>& points, std::span<const double> values) {
  for (std::size_t i = 0; i < points.size(); ++i) {
    const std::size_t begin = i == 0 ? 0 : points[i - 1].night, at = points[i].night;
    const std::size_t end = i + 1 == points.size() ? values.size() : points[i + 1].night;
    points[i].median_before = median(values.subspan(begin, at - begin));
    points[i].median_after = median(values.subspan(at, end - at));
  }
}

std::string abbreviated(const std::string& commit) { return commit.empty() ? "(unknown)" : commit.substr(0, 12); }

}  // namespace

double ChangePoint::relative() const {
  if (median_before == median_after) return 0;
  if (median_before == 0) return std::copysign(std::numeric_limits<double>::infinity(), median_after);
  return (median_after - median_before) / std::abs(median_before);
}

std::vector<ChangePoint> find_change_points(const std::vector<Night>& nights, const ChangeLimits& limits) {
  std::vector<double> values;
  for (const auto& night : nights) values.push_back(median(night.values));
  std::vector<ChangePoint> points;
  divide(values, 0, values.size(), limits.false_alarms, points);
  set_medians(points, values);
  std::erase_if(points, [&](const ChangePoint& point) { return !(std::abs(point.relative()) >= limits.least); });
  for (auto& point : points) {
    point.before = nights[point.night - 1].commit;
    point.after = nights[point.night].commit;
  }
  return points;
}

std::string describe(const std::string& subject, const ChangePoint& point) {
  const double relative = point.relative();
  std::string text = subject + (relative < 0 ? " fell" : " rose");
  if (std::isfinite(relative)) text += format_text(" %.1f %%", 100 * std::abs(relative));
  text += point.before == point.after
              ? " at commit " + abbreviated(point.after) + ", without a change of the code"
              : " between commits " + abbreviated(point.before) + " and " + abbreviated(point.after);
  return text + format_text(" (%.6g to %.6g)", point.median_before, point.median_after);
}

}  // namespace phalanx::history
