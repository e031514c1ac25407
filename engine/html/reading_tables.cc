// SPDX-License-Identifier: Apache-2.0
#include "engine/html/reading_tables.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "engine/html/chart.h"
#include "engine/html/page.h"
#include "engine/html/reading_name.h"
#include "framework/base/escape_html.h"
#include "framework/base/text.h"

namespace phalanx {
namespace {

constexpr std::array kSplits{"train", "validation", "test"};

using Matrix = std::vector<std::vector<double>>;  // NaN where there is no reading

const Curve* curve_of(const RunRecord& run, const std::string& split, const std::string& reading) {
  const auto curve = run.curves.find(split + "/" + reading);
  return curve == run.curves.end() || curve->second.empty() ? nullptr : &curve->second;
}

// Returns the readings with this number of indices by family, in the order in which families first appear.
std::vector<std::pair<std::string, std::vector<std::string>>> families(const RunRecord& run, std::size_t indices) {
  std::vector<std::pair<std::string, std::vector<std::string>>> all;
  for (const auto& reading : run.readings) {
    const ReadingName name = parse_reading_name(reading);
    if (name.index.size() != indices) continue;
    auto family = std::ranges::find(all, name.family, [](const auto& one) { return one.first; });
    if (family == all.end()) family = all.emplace(all.end(), name.family, std::vector<std::string>());
    family->second.push_back(reading);
  }
  return all;
}

std::size_t classes_in(const std::vector<std::string>& readings) {
  std::int64_t most = -1;
  for (const auto& reading : readings) most = std::max(most, std::ranges::max(parse_reading_name(reading).index));
  return static_cast<std::size_t>(most + 1);
}

Matrix matrix_of(const RunRecord& run, const std::string& split, const std::vector<std::string>& readings) {
  const std::size_t classes = classes_in(readings);
  Matrix matrix(classes, std::vector<double>(classes, NAN));
  for (const auto& reading : readings) {
    const auto index = parse_reading_name(reading).index;
    const Curve* curve = curve_of(run, split, reading);
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

std::string last_value(const RunRecord& run, const std::string& split, const std::string& reading) {
  const Curve* curve = curve_of(run, split, reading);
  return curve ? short_number(curve->back().second) : "";
}

std::string fold(const RunRecord& run, const std::string& title, const std::vector<std::string>& readings) {
  std::vector<std::string> splits;
  for (const char* split : kSplits) {
    const bool any = std::ranges::any_of(readings, [&](const auto& reading) { return curve_of(run, split, reading); });
    if (any) splits.emplace_back(split);
  }
  std::vector<std::vector<std::string>> rows{{"last value"}};
  rows[0].insert(rows[0].end(), splits.begin(), splits.end());
  for (const auto& reading : readings) {
    std::vector<std::string> row{reading};
    for (const auto& split : splits) row.push_back(last_value(run, split, reading));
    rows.push_back(std::move(row));
  }
  return "<details class=\"list\"><summary>" + escape_html(title) + "</summary>" + to_table(rows) + "</details>\n";
}

}  // namespace

std::string to_matrices(const RunRecord& run) {
  std::string text;
  for (const auto& [family, readings] : families(run, 2)) {
    if (classes_in(readings) > kMostClasses) {
      text += "<p class=\"about\">" + escape_html(family) +
              format_text(": %zu classes are too many for a table; metrics.jsonl has it.</p>\n", classes_in(readings));
      continue;
    }
    const bool tested = curve_of(run, "validation", readings[0]) || curve_of(run, "test", readings[0]);
    for (const char* split : kSplits) {
      const Curve* curve = curve_of(run, split, readings[0]);
      if (!curve || (tested && split == std::string("train"))) continue;
      text += "<h3>" + escape_html(family) + format_text(" · %s, step %.0f</h3>\n", split, curve->back().first) +
              draw_matrix(matrix_of(run, split, readings));
    }
  }
  return text;
}

std::string to_folded_lists(const RunRecord& run, std::size_t charts) {
  std::string text;
  for (const auto& [family, readings] : families(run, 1)) {
    text += fold(run, family + format_text(": %zu readings", readings.size()), readings);
  }
  auto singles = single_readings(run.readings);
  if (singles.size() <= charts) return text;
  singles.erase(singles.begin(), singles.begin() + static_cast<std::ptrdiff_t>(charts));
  return text + fold(run, format_text("%zu more readings", singles.size()), singles);
}

}  // namespace phalanx
