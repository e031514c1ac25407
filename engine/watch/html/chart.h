// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "engine/watch/html/run_record.h"

namespace phalanx {

struct Series {
  std::string name;
  Curve points;  // by step, ascending; what is not finite is a gap
};

/// Curves over steps in one frame.
struct Chart {
  std::string title;
  std::string unit{};            // behind values: " ms", " %"
  std::vector<Series> series{};  // at most kMostSeries
  bool stacked = false;          // areas on top of each other, which have the same steps
};
inline constexpr std::size_t kMostSeries = 8;

/// The chart as HTML: title, legend with last values, and an SVG whose colors and behavior Page brings along. Of more
/// points than pixels the lowest and highest of each pixel are drawn. Empty where no series has a finite point.
std::string draw(const Chart& chart);

/// Of so many readings of a run there are charts.
inline constexpr std::size_t kMostReadings = 12;

/// Drawn charts side by side. Empty without charts.
std::string to_charts(const std::string& drawn);

/// Round numbers from `low` to `high`, about `count` of them: their distance is 1, 2 or 5 times a power of ten. None
/// where doubles cannot tell them apart.
std::vector<double> ticks(double low, double high, int count);

/// At most five letters or so: "0.25", "12.3k", "1.2M", "3e-05".
std::string short_number(double value);

}  // namespace phalanx
