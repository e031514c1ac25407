// SPDX-License-Identifier: Apache-2.0
#include "tools/report/comparison_page.h"

#include <algorithm>

#include "engine/html/chart.h"
#include "engine/html/metric_name.h"
#include "engine/html/page.h"
#include "framework/base/escape_html.h"
#include "framework/base/text.h"
#include "tools/report/comparison.h"

namespace phalanx {
namespace {

// Returns the metrics of all runs, each once.
std::vector<std::string> all_metrics(const std::vector<RunRecord>& runs) {
  std::vector<std::string> all;
  for (const auto& run : runs) {
    for (const auto& metric : run.metrics) {
      if (std::ranges::find(all, metric) == all.end()) all.push_back(metric);
    }
  }
  return all;
}

// Returns the keys of the curves: losses first and speed last.
std::vector<std::string> curve_keys(const std::vector<std::string>& metrics) {
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < std::min(metrics.size(), kMaxMetrics); ++i) {
    for (const char* split : {"train/", "validation/", "test/"}) keys.push_back(split + metrics[i]);
  }
  keys.emplace_back("train/learning_rate");
  keys.emplace_back("train/samples_per_second");
  return keys;
}

std::string title_of(const std::string& key) {
  if (key == "train/samples_per_second") return "throughput";
  if (key == "train/learning_rate") return "learning rate";
  const auto slash = key.find('/');
  return key.substr(0, slash) + " " + key.substr(slash + 1);
}

std::string curves(const std::vector<RunRecord>& runs) {
  const auto names = names_of(runs), all = all_metrics(runs), metrics = scalar_metrics(all);
  std::string text;
  for (const auto& key : curve_keys(metrics)) {
    Chart chart{.title = title_of(key), .unit = key == "train/samples_per_second" ? " samples/s" : ""};
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const auto curve = runs[i].curves.find(key);
      // A run without this curve keeps its position, so that a run has the same color in every chart.
      chart.series.push_back({names[i], curve == runs[i].curves.end() ? Curve{} : curve->second});
    }
    text += draw(chart);
  }
  const std::size_t drawn = std::min(metrics.size(), kMaxMetrics);
  if (text.empty() || drawn == all.size()) return to_charts(text);
  return to_charts(text) +
         format_text("<p class=\"about\">%zu more metrics are in metrics.jsonl.</p>\n", all.size() - drawn);
}

std::string table_or(const Rows& rows, const std::string& otherwise) {
  return rows.size() > 1 ? to_table(rows) : "<p class=\"about\">" + otherwise + "</p>\n";
}

}  // namespace

std::string to_comparison_page(const std::vector<RunRecord>& runs) {
  const std::string title = std::to_string(runs.size()) + " runs compared";
  return to_page(title,
                 "<h1>" + title + "</h1>\n" + to_section("Results", to_table(compare_key_metrics(runs))) +
                     to_section("Curves", curves(runs)) +
                     to_section("Time of a step", table_or(compare_step_time(runs), "No run has finished.")) +
                     to_section("Config differences", table_or(compare_configs(runs), "The configs are the same.")));
}

}  // namespace phalanx
