// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "framework/base/escape_html.h"
#include "framework/base/text.h"

namespace phalanx::bench {
namespace {

// Sizes in pixels.
constexpr double kPanelWidth = 380, kPanelHeight = 260, kLeft = 64, kTop = 56, kBetween = 84, kLegend = 236;
constexpr double kBlockHeight = kTop + kPanelHeight + 64;
constexpr double kWidth = kLeft + 2 * kPanelWidth + kBetween + kLegend;

// Colors that people with red-green color blindness can distinguish (Okabe and Ito).
constexpr std::array<const char*, 8> kColors = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                "#e69f00", "#56b4e9", "#000000", "#8a8a00"};

std::string words(double x, double y, const char* anchor, const std::string& text, const char* style = "") {
  return format_text("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" %s>", x, y, anchor, style) + escape_html(text) +
         "</text>\n";
}

/// A logarithmic axis from `from` to `to` pixels.
class Axis {
 public:
  Axis(double low, double high, double from, double to) : from_(from), to_(to) {
    low_ = std::log10(low);
    high_ = std::max(std::log10(high), low_ + 1e-9);
  }
  double at(double value) const { return from_ + (to_ - from_) * (std::log10(value) - low_) / (high_ - low_); }

  /// Returns powers of ten, and for a range of less than two decades also their multiples by two and five.
  std::vector<double> ticks() const {
    std::vector<double> all;
    const bool wide = high_ - low_ >= 2;
    for (double power = std::floor(low_); power <= std::ceil(high_); ++power) {
      for (const double factor : {1.0, 2.0, 5.0}) {
        const double place = power + std::log10(factor);
        if ((factor == 1 || !wide) && place > low_ - 1e-6 && place < high_ + 1e-6) all.push_back(std::pow(10, place));
      }
    }
    return all;
  }

 private:
  double from_, to_, low_, high_;
};

/// The rows of one line.
struct Curve {
  std::string label, color, dash;
  std::vector<const Row*> rows;
};

std::vector<Curve> curves_of(const std::vector<const Row*>& rows) {
  std::vector<Curve> curves;
  std::vector<std::string> kinds;  // backends with algorithm; each has a color
  for (const auto* row : rows) {
    const std::string kind = row->backend + (row->algorithm == "native" ? "" : ", " + row->algorithm);
    if (std::ranges::find(kinds, kind) == kinds.end()) kinds.push_back(kind);
    const std::string label = kind + ", " + row->memory;
    auto found = std::ranges::find(curves, label, &Curve::label);
    if (found == curves.end()) {
      const auto number = static_cast<std::size_t>(std::ranges::find(kinds, kind) - kinds.begin());
      curves.push_back({label, kColors[number % kColors.size()], row->memory == "private" ? "5 4" : "none", {}});
      found = curves.end() - 1;
    }
    found->rows.push_back(row);
  }
  for (auto& curve : curves) std::ranges::sort(curve.rows, {}, &Row::bytes);
  return curves;
}

using Metric = double (*)(const Row&);

/// One pair of axes with its curves.
class Panel {
 public:
  Panel(const std::vector<Curve>& curves, Metric metric, double left, double top)
      : curves_(curves), metric_(metric), left_(left), top_(top), x_(1, 10, 0, 1), y_(1, 10, 0, 1) {
    double low = std::numeric_limits<double>::max(), high = 0, least = low, most = 0;
    for (const auto& curve : curves) {
      for (const auto* row : curve.rows) {
        const auto bytes = static_cast<double>(row->bytes);
        low = std::min(low, bytes), high = std::max(high, bytes);
        least = std::min(least, metric(*row)), most = std::max(most, metric(*row));
        if (std::ranges::find(sizes_, row->bytes) == sizes_.end()) sizes_.push_back(row->bytes);
      }
    }
    std::ranges::sort(sizes_);
    x_ = Axis(low / 1.4, high * 1.4, left, left + kPanelWidth);
    y_ = Axis(least / 1.6, most * 1.6, top + kPanelHeight, top);
  }

  std::string draw(const std::string& title) const {
    std::string svg = words(left_, top_ - 10, "start", title, "font-weight=\"600\"");
    for (const double tick : y_.ticks()) {
      svg += format_text("<path d=\"M%.1f %.1fh%.1f\" stroke=\"#dddddd\"/>\n", left_, y_.at(tick), kPanelWidth);
      svg += words(left_ - 8, y_.at(tick) + 4, "end", format_text("%g", tick));
    }
    double last = -1e9;
    for (const auto size : sizes_) {
      const double x = x_.at(static_cast<double>(size));
      svg += format_text("<path d=\"M%.1f %.1fv%.1f\" stroke=\"#eeeeee\"/>\n", x, top_, kPanelHeight);
      if (std::abs(x - last) < 42) continue;  // labels would touch
      svg += words(x, top_ + kPanelHeight + 18, "middle", format_bytes(size));
      last = x;
    }
    svg +=
        format_text("<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"none\" stroke=\"#888888\"/>\n",
                    left_, top_, kPanelWidth, kPanelHeight);
    for (const auto& curve : curves_) svg += draw(curve);
    return svg;
  }

 private:
  std::string draw(const Curve& curve) const {
    std::string points, marks;
    for (const auto* row : curve.rows) {
      const double x = x_.at(static_cast<double>(row->bytes)), y = y_.at(metric_(*row));
      points += format_text("%.1f,%.1f ", x, y);
      marks += format_text("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.6\" fill=\"%s\"/>\n", x, y, curve.color.c_str());
    }
    return format_text("<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"1.8\" stroke-dasharray=\"%s\" points=\"",
                       curve.color.c_str(), curve.dash.c_str()) +
           points + "\"/>\n" + marks;
  }

  const std::vector<Curve>& curves_;
  Metric metric_;
  double left_, top_;
  std::vector<std::int64_t> sizes_{};
  Axis x_, y_;
};

std::string legend(const std::vector<Curve>& curves, double left, double top) {
  std::string svg;
  for (const auto& curve : curves) {
    svg += format_text("<path d=\"M%.1f %.1fh26\" stroke=\"%s\" stroke-width=\"1.8\" stroke-dasharray=\"%s\"/>\n", left,
                       top, curve.color.c_str(), curve.dash.c_str());
    svg += words(left + 34, top + 4, "start", curve.label);
    top += 20;
  }
  return svg;
}

std::string block(const std::string& op, const std::vector<const Row*>& rows, double top) {
  auto curves = curves_of(rows);
  const double right = kLeft + kPanelWidth + kBetween;
  std::string svg = words(kLeft, top + 22, "start", op + ", " + std::to_string(rows.front()->ranks) + " ranks",
                          "font-weight=\"600\" font-size=\"15\"");
  svg += Panel(curves, [](const Row& row) { return row.p50_us; }, kLeft, top + kTop).draw("median time, us");
  const bool moves = rows.front()->bus_gb_s > 0;
  if (moves) {
    const Metric bandwidth = [](const Row& row) { return row.bus_gb_s; };
    svg += Panel(curves, bandwidth, right, top + kTop).draw("bus bandwidth, GB/s");
  }
  svg += words(kLeft, top + kTop + kPanelHeight + 38, "start", std::string("bytes ") + find_operation(op).bytes,
               "fill=\"#555555\"");
  return svg + legend(curves, moves ? right + kPanelWidth + 20 : kLeft + kPanelWidth + 20, top + kTop + 10);
}

}  // namespace

std::string to_svg(const Result& result) {
  std::vector<std::string> ops;
  for (const auto& row : result.rows) {
    if (row.bytes > 0 && std::ranges::find(ops, row.op) == ops.end()) ops.push_back(row.op);
  }
  std::string body;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    std::vector<const Row*> rows;
    for (const auto& row : result.rows) {
      if (row.op == ops[i]) rows.push_back(&row);
    }
    body += block(ops[i], rows, static_cast<double>(i) * kBlockHeight);
  }
  const double height = std::max<double>(1, static_cast<double>(ops.size())) * kBlockHeight;
  return format_text(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" "
             "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
             kWidth, height, kWidth, height) +
         body + "</svg>\n";
}

}  // namespace phalanx::bench
