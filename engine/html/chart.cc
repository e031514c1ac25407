// SPDX-License-Identifier: Apache-2.0
#include "engine/html/chart.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>

#include "framework/base/escape_html.h"
#include "framework/base/text.h"

namespace phalanx {
namespace {

// Units of the view box, which is scaled to the width of its place in the page.
constexpr double kWidth = 480, kHeight = 240, kLeft = 50, kRight = 470, kTop = 12, kBottom = 208;
constexpr double kTextWidth = 60, kNumberWidth = 26;  // of a stretch that has room for "12 ranks", or for "12"
constexpr std::size_t kMaxPoints = 400;
constexpr double kExact = 1e15;  // whole numbers up to this one are exact as doubles

struct Range {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  void include(double value) {
    if (!std::isfinite(value)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool empty() const { return low > high; }
  // Returns true if the range is one value, or so small that ticks within it could not be distinguished.
  bool one_value() const { return high - low <= 1e-9 * std::max(std::abs(low), std::abs(high)); }
};

// Returns the mean of each run of points, because stacked series must keep the same steps.
Curve average(const Curve& points) {
  if (points.size() <= kMaxPoints) return points;
  Curve few;
  for (std::size_t i = 0; i < kMaxPoints; ++i) {
    const std::size_t begin = points.size() * i / kMaxPoints, end = points.size() * (i + 1) / kMaxPoints;
    double sum = 0;
    for (std::size_t j = begin; j < end; ++j) sum += points[j].second;
    few.emplace_back(points[end - 1].first, sum / static_cast<double>(end - begin));
  }
  return few;
}

// Adds to each series all series before it.
std::vector<Series> stack(std::vector<Series> series) {
  for (std::size_t i = 1; i < series.size(); ++i) {
    for (std::size_t j = 0; j < series[i].points.size() && j < series[i - 1].points.size(); ++j) {
      series[i].points[j].second += series[i - 1].points[j].second;
    }
  }
  return series;
}

class Drawing {
 public:
  Drawing(const Chart& chart, const std::vector<Series>& lines) : chart_(chart), lines_(lines) {
    for (const auto& line : lines) {
      for (const auto& [step, value] : line.points) {
        if (std::isfinite(value)) x_.include(step);
        y_.include(value);
      }
    }
    if (chart.stacked) y_.include(0);
    if (!empty()) widen();
  }

  bool empty() const { return y_.empty(); }

  std::string svg() const {
    std::string text = format_text("<svg viewBox=\"0 0 %g %g\" role=\"img\" aria-label=\"", kWidth, kHeight) +
                       escape_html(chart_.title) + " over steps\">" + axes();
    for (std::size_t i = lines_.size(); i-- > 0;) text += chart_.stacked ? area(i) : line(i);
    for (const auto& one : chart_.stretches) text += stretch(one);
    return text + "</svg>";
  }

  /// Returns the position of the frame and the points, as JSON for the page's script.
  std::string data() const {
    nlohmann::ordered_json series = nlohmann::ordered_json::array();
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      nlohmann::ordered_json points = nlohmann::ordered_json::array();
      for (std::size_t j = 0; j < lines_[i].points.size(); ++j) {
        const auto& [step, drawn] = lines_[i].points[j];
        points.push_back({step, drawn, value_at(i, j)});
      }
      series.push_back({{"name", lines_[i].name}, {"points", points}});
    }
    const nlohmann::ordered_json all{{"x", {x_.low, x_.high, kLeft, kRight}},
                                     {"y", {y_.low, y_.high, kBottom, kTop}},
                                     {"unit", chart_.unit},
                                     {"series", series}};
    std::string text = all.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
    // "<!--" also has a meaning within a script element.
    for (std::size_t at = 0; (at = text.find('<', at)) != std::string::npos;) text.replace(at, 1, "\\u003c");
    return text;
  }

 private:
  // Widens the ranges, because a line at the very edge, or one with a single value, would be invisible.
  void widen() {
    if (x_.low == x_.high) x_ = {x_.low - 1, x_.high + 1};
    const double margin = y_.one_value() ? std::max(std::abs(y_.low) * 0.1, 1e-9) : (y_.high - y_.low) * 0.05;
    const bool from_zero = y_.low >= 0 && (chart_.stacked || y_.low < 0.25 * y_.high);
    y_ = {from_zero ? 0 : y_.low - margin, y_.high + margin};
  }

  double x(double step) const { return kLeft + (step - x_.low) / (x_.high - x_.low) * (kRight - kLeft); }
  double y(double value) const { return kBottom - (value - y_.low) / (y_.high - y_.low) * (kBottom - kTop); }

  double value_at(std::size_t i, std::size_t j) const {
    const double drawn = lines_[i].points[j].second;
    if (!chart_.stacked || i == 0 || j >= lines_[i - 1].points.size()) return drawn;
    return drawn - lines_[i - 1].points[j].second;
  }

  std::string axes() const {
    std::string text = "<g class=\"axes\">";
    for (const double value : ticks(y_.low, y_.high, 4)) {
      text += format_text("<line x1=\"%g\" x2=\"%g\" y1=\"%.1f\" y2=\"%.1f\"/>", kLeft, kRight, y(value), y(value)) +
              format_text("<text x=\"%g\" y=\"%.1f\" text-anchor=\"end\">%s</text>", kLeft - 6, y(value) + 4,
                          short_number(value).c_str());
    }
    for (const double step : ticks(x_.low, x_.high, 5)) {
      if (step != std::floor(step)) continue;
      text += format_text("<text x=\"%.1f\" y=\"%g\" text-anchor=\"middle\">%s</text>", x(step), kBottom + 18,
                          short_number(step).c_str());
    }
    return text + "</g>";
  }

  std::string line(std::size_t i) const {
    std::string path, dots;
    const auto& points = lines_[i].points;
    bool pen_down = false;
    for (const auto& [step, value] : points) {
      const bool here = std::isfinite(value);
      if (here) path += format_text("%c%.1f %.1f", pen_down ? 'L' : 'M', x(step), y(value));
      pen_down = here;
    }
    if (points.size() <= 12) {
      for (const auto& [step, value] : points) {
        if (std::isfinite(value)) dots += format_text("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\"/>", x(step), y(value));
      }
    }
    return format_text("<g class=\"line s%zu\"><path d=\"%s\"/>%s</g>", i, path.c_str(), dots.c_str());
  }

  // Returns an area down to the axis. The topmost area is drawn first, so that lower areas cover it.
  std::string area(std::size_t i) const {
    const auto& points = lines_[i].points;
    if (points.empty()) return {};
    std::string path = format_text("M%.1f %.1f", x(points.front().first), y(0));
    for (const auto& [step, value] : points) {
      if (std::isfinite(value)) path += format_text("L%.1f %.1f", x(step), y(value));
    }
    path += format_text("L%.1f %.1fZ", x(points.back().first), y(0));
    return format_text("<path class=\"area s%zu\" d=\"%s\"/>", i, path.c_str());
  }

  // Returns a band over the steps of a stretch, with as much of its text as fits.
  std::string stretch(const Stretch& stretch) const {
    const double left = x(std::max(stretch.from, x_.low)), right = x(std::min(stretch.to, x_.high));
    if (left >= right) return {};
    const std::string number = std::to_string(stretch.ranks), text = number + (stretch.ranks == 1 ? " rank" : " ranks");
    const double width = right - left;
    const std::string shown = width >= kTextWidth ? text : width >= kNumberWidth ? number : "";
    return "<g class=\"stretch\"><title>" + text + format_text(" from step %.0f on</title>", stretch.from) +
           format_text("<rect x=\"%.1f\" y=\"%g\" width=\"%.1f\" height=\"%g\"/>", left, kTop, width, kBottom - kTop) +
           format_text("<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%g\" y2=\"%g\"/>", left, left, kTop, kBottom) +
           format_text("<text x=\"%.1f\" y=\"%g\">%s</text></g>", left + 4, kTop - 2, shown.c_str());
  }

  const Chart& chart_;
  const std::vector<Series>& lines_;
  Range x_, y_;
};

std::string legend(const Chart& chart) {
  std::string text = "<div class=\"legend\">";
  for (std::size_t i = 0; i < chart.series.size(); ++i) {
    const auto& series = chart.series[i];
    const std::string last = series.points.empty() ? "" : short_number(series.points.back().second) + chart.unit;
    text += format_text("<span class=\"s%zu\"><i></i>", i) + escape_html(series.name) + " <b>" + escape_html(last) +
            "</b></span>";
  }
  return text + "</div>";
}

}  // namespace

Curve thin(const Curve& points, std::size_t most) {
  if (points.size() <= most) return points;
  const std::size_t sections = most / 2;
  Curve few;
  for (std::size_t i = 0; i < sections; ++i) {
    const auto begin = points.begin() + static_cast<std::ptrdiff_t>(points.size() * i / sections);
    const auto end = points.begin() + static_cast<std::ptrdiff_t>(points.size() * (i + 1) / sections);
    Curve finite;
    std::copy_if(begin, end, std::back_inserter(finite), [](auto& point) { return std::isfinite(point.second); });
    if (finite.empty()) {
      few.emplace_back(begin->first, NAN);
      continue;
    }
    auto [low, high] = std::ranges::minmax_element(finite, {}, &Curve::value_type::second);
    if (high < low) std::swap(low, high);
    few.push_back(*low);
    if (low != high) few.push_back(*high);
  }
  return few;
}

std::string to_charts(const std::string& drawn) {
  return drawn.empty() ? "" : "<div class=\"charts\">\n" + drawn + "</div>\n";
}

std::vector<double> ticks(double low, double high, int count) {
  const double rough = (high - low) / count, power = std::pow(10, std::floor(std::log10(rough)));
  const double factor = rough / power;
  const double distance = power * (factor < 1.5 ? 1 : factor < 3.5 ? 2 : factor < 7.5 ? 5 : 10);
  const double first = std::ceil(low / distance - 1e-9);
  std::vector<double> all;
  if (!(distance > 0) || !std::isfinite(first * distance) || std::abs(first) > kExact) return all;
  for (int i = 0; i <= 2 * count + 1 && (first + i) * distance <= high + 1e-9 * distance; ++i) {
    all.push_back((first + i) * distance + 0.0);  // avoids -0
  }
  return all;
}

std::string short_number(double value) {
  const double size = std::abs(value);
  if (!std::isfinite(value)) return "none";
  if (size >= 1e6) return format_text("%.3gM", value / 1e6);
  if (size >= 1e4) return format_text("%.3gk", value / 1e3);
  return format_text(size >= 1000 ? "%.0f" : "%.3g", value);
}

std::string draw(const Chart& chart) {
  std::vector<Series> lines = chart.series;
  for (auto& series : lines) series.points = chart.stacked ? average(series.points) : thin(series.points, kMaxPoints);
  if (chart.stacked) lines = stack(std::move(lines));
  const Drawing drawing(chart, lines);
  if (drawing.empty()) return {};
  return "<figure class=\"chart\"><figcaption>" + escape_html(chart.title) + "</figcaption>" + legend(chart) +
         "<div class=\"plot\">" + drawing.svg() + "</div><script type=\"application/json\">" + drawing.data() +
         "</script></figure>\n";
}

}  // namespace phalanx
