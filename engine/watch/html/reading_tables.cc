// SPDX-License-Identifier: Apache-2.0
#include "engine/watch/html/reading_tables.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "engine/watch/html/chart.h"
#include "engine/watch/html/page.h"
#include "engine/watch/html/reading_name.h"
#include "framework/base/escape_html.h"
#include "framework/base/text.h"

namespace phalanx {
namespace {

constexpr std::array kSplits{"train", "validation", "test"};

using Matrix = std::vector<std::vector<double>>;  // NaN where there is no metric

const Curve* curve_of(const RunRecord& run, const std::string& split, const std::string& metric) {
  const auto curve = run.curves.find(split + "/" + metric);
  return curve == run.curves.end() || curve->second.empty() ? nullptr : &curve->second;
}

// Returns the metrics with this number of indices by family, in the order in which families first appear.
std::vector<std::pair<std::string, std::vector<std::string>>> families(const RunRecord& run, std::size_t indices) {
  std::vector<std::pair<std::string, std::vector<std::string>>> all;
  for (const auto& metric : run.metrics) {
    const MetricName name = parse_metric_name(metric);
    if (name.index.size() != indices) continue;
    auto family = std::ranges::find(all, name.family, [](const auto& one) { return one.first; });
    if (family == all.end()) family = all.emplace(all.end(), name.family, std::vector<std::string>());
    family->second.push_back(metric);
  }
  return all;
}

std::size_t classes_in(const std::vector<std::string>& metrics) {
  std::int64_t most = -1;
  for (const auto& metric : metrics) most = std::max(most, std::ranges::max(parse_metric_name(metric).index));
  return static_cast<std::size_t>(most + 1);
}

Matrix matrix_of(const RunRecord& run, const std::string& split, const std::vector<std::string>& metrics) {
  const std::size_t classes = classes_in(metrics);
  Matrix matrix(classes, std::vector<double>(classes, NAN));
  for (const auto& metric : metrics) {
    const auto index = parse_metric_name(metric).index;
    const Curve* curve = curve_of(run, split, metric);
    if (curve) matrix[static_cast<std::size_t>(index[0])][static_cast<std::size_t>(index[1])] = curve->back().second;
  }
  return matrix;
}

std::string draw_matrix(const Matrix& matrix) {
  std::string text = "<div class=\"wide narrow\"><table class=\"matrix\">\n<thead><tr><th>true class ╲ predicted</th>";
  for (std::size_t j = 0; j < matrix.size(); ++j) text += format_text("<th>%zu</th>", j);
  text += "</tr></thead>\n<tbody>\n";
  for (std::size_t i = 0; i < matrix.size(); ++i) {
    double sum = 0;
    for (const double value : matrix[i]) sum += std::isfinite(value) ? value : 0;
    text += format_text("<tr><th>%zu</th>", i);
    for (const double value : matrix[i]) {
      const double share = sum > 0 && std::isfinite(value) ? value / sum : 0;
      text += format_text("<td style=\"--share:%.3f\">", share) + (value == 0 ? "" : short_number(value)) + "</td>";
    }
    text += "</tr>\n";
  }
  return text + "</tbody></table></div>\n";
}

std::string last_value(const RunRecord& run, const std::string& split, const std::string& metric) {
  const Curve* curve = curve_of(run, split, metric);
  return curve ? short_number(curve->back().second) : "";
}

std::string fold(const RunRecord& run, const std::string& title, const std::vector<std::string>& metrics) {
  std::vector<std::string> splits;
  for (const char* split : kSplits) {
    const bool any = std::ranges::any_of(metrics, [&](const auto& metric) { return curve_of(run, split, metric); });
    if (any) splits.emplace_back(split);
  }
  std::vector<std::vector<std::string>> rows{{"last value"}};
  rows[0].insert(rows[0].end(), splits.begin(), splits.end());
  for (const auto& metric : metrics) {
    std::vector<std::string> row{metric};
    for (const auto& split : splits) row.push_back(last_value(run, split, metric));
    rows.push_back(std::move(row));
  }
  return "<details class=\"list\"><summary>" + escape_html(title) + "</summary>" + to_table(rows) + "</details>\n";
}

}  // namespace

std::string to_matrices(const RunRecord& run) {
  std::string text;
  for (const auto& [family, metrics] : families(run, 2)) {
    if (classes_in(metrics) > kMaxClasses) {
      text += "<p class=\"about\">" + escape_html(family) +
              format_text(": %zu classes are too many for a table; metrics.jsonl has it.</p>\n", classes_in(metrics));
      continue;
    }
    const bool tested = curve_of(run, "validation", metrics[0]) || curve_of(run, "test", metrics[0]);
    for (const char* split : kSplits) {
      const Curve* curve = curve_of(run, split, metrics[0]);
      if (!curve || (tested && split == std::string("train"))) continue;
      text += "<h3>" + escape_html(family) + format_text(" · %s, step %.0f</h3>\n", split, curve->back().first) +
              draw_matrix(matrix_of(run, split, metrics));
    }
  }
  return text;
}

std::string to_folded_lists(const RunRecord& run, std::size_t charts) {
  std::string text;
  for (const auto& [family, metrics] : families(run, 1)) {
    text += fold(run, family + format_text(": %zu metrics", metrics.size()), metrics);
  }
  auto singles = scalar_metrics(run.metrics);
  if (singles.size() <= charts) return text;
  singles.erase(singles.begin(), singles.begin() + static_cast<std::ptrdiff_t>(charts));
  return text + fold(run, format_text("%zu more metrics", singles.size()), singles);
}

}  // namespace phalanx
