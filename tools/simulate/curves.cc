// SPDX-License-Identifier: Apache-2.0
#include "tools/simulate/curves.h"

#include <cmath>

#include "engine/html/chart.h"
#include "framework/base/error.h"
#include "framework/base/escape_html.h"
#include "framework/base/text.h"

namespace phalanx::simulate {
namespace {

constexpr double kWidth = 640, kHeight = 400, kLeft = 70, kRight = 20, kTop = 40, kBottom = 50;

/// A logarithmic axis.
class Scale {
 public:
  Scale(double low, double high, double from, double to)
      : low_(std::log(low)), range_(std::log(high) - low_), from_(from), length_(to - from) {}
  double operator()(double value) const { return from_ + (std::log(value) - low_) / range_ * length_; }

 private:
  double low_, range_, from_, length_;
};

std::string label(double x, double y, const char* anchor, const std::string& words) {
  return format_text("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor) + escape_html(words) +
         "</text>\n";
}

template <class Of>
std::string curve(const std::vector<ScalingPoint>& points, const Scale& x, const Scale& y, const char* style, Of of) {
  std::string path = "<polyline fill=\"none\" ";
  path += style;
  path += " points=\"";
  for (const auto& point : points) path += format_text("%.1f,%.1f ", x(static_cast<double>(point.ranks)), y(of(point)));
  return path + "\"/>\n";
}

}  // namespace

std::string draw_scaling(const std::string& title, const std::vector<ScalingPoint>& points) {
  if (points.size() < 2) throw ConfigError("cluster.hosts: a scaling curve needs at least 2 hosts");
  const auto& first = points.front();
  const auto& last = points.back();
  const Scale x(static_cast<double>(first.ranks), static_cast<double>(last.ranks), kLeft, kWidth - kRight);
  const Scale y(first.samples_per_second / 2, last.ideal, kHeight - kBottom, kTop);
  std::string svg = format_text(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" font-family=\"sans-serif\" "
      "font-size=\"12\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
      kWidth, kHeight);
  svg += label(kWidth / 2, kTop / 2, "middle", title);
  svg += label(kWidth / 2, kHeight - 10, "middle", "ranks");
  svg += label(kLeft, kTop - 8, "middle", "samples/s");
  for (const auto& point : points) {
    const double at = x(static_cast<double>(point.ranks));
    svg += format_text("<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#d4d4d4\"/>\n", at, at, kTop,
                       kHeight - kBottom);
    svg += label(at, kHeight - kBottom + 16, "middle", std::to_string(point.ranks));
    const double height = y(point.samples_per_second);
    svg += label(kLeft - 6, height + 4, "end", short_number(point.samples_per_second));
    svg += format_text("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"#0072b2\"/>\n", at, height);
  }
  svg += curve(points, x, y, "stroke=\"#000000\" stroke-dasharray=\"4 3\"",
               [](const ScalingPoint& point) { return point.ideal; });
  svg += curve(points, x, y, "stroke=\"#0072b2\" stroke-width=\"2\"",
               [](const ScalingPoint& point) { return point.samples_per_second; });
  svg += label(kWidth - kRight, kHeight - kBottom - 8, "end", "dashed: ideal");
  return svg + "</svg>\n";
}

}  // namespace phalanx::simulate
