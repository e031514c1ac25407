// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "engine/html/run_record.h"

namespace phalanx {

struct Series {
  std::string name;
  Curve points;  // by step, ascending; values that are not finite are gaps
};

/// A chart of curves over steps.
struct Chart {
  std::string title;
  std::string unit{};                // follows values: " ms", " %"
  std::vector<Series> series{};      // at most kMaxSeries
  bool stacked = false;              // areas on top of each other; all series must have the same steps
  std::vector<Stretch> stretches{};  // shaded, with the number of ranks
};
inline constexpr std::size_t kMaxSeries = 8;

/// Returns the chart as HTML: title, legend with last values, and an SVG whose colors and script to_page() adds. If
/// there are more points than pixels, the lowest and highest point of each pixel are drawn. Empty if no series has a
/// finite point.
std::string draw(const Chart& chart);

/// Returns a curve of about `most` points: the lowest and the highest point of each stretch, so that no peak is lost. A
/// stretch without finite points becomes a gap. Curves with at most `most` points stay as they are.
Curve thin(const Curve& points, std::size_t most);

/// The maximum number of charts, each of one metric.
inline constexpr std::size_t kMaxMetrics = 12;

/// Returns HTML with the drawn charts side by side. Empty if there are no charts.
std::string to_charts(const std::string& drawn);

/// Returns round numbers from `low` to `high`, about `count` of them. Their distance is 1, 2 or 5 times a power of ten.
/// Empty if doubles cannot represent such a distance.
std::vector<double> ticks(double low, double high, int count);

/// Returns a number in about five characters: "0.25", "12.3k", "1.2M", "3e-05".
std::string short_number(double value);

}  // namespace phalanx
