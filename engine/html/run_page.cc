// SPDX-License-Identifier: Apache-2.0
#include "engine/html/run_page.h"

#include <algorithm>
#include <ctime>
#include <vector>

#include "engine/html/chart.h"
#include "engine/html/hang_timeline.h"
#include "engine/html/key_metrics.h"
#include "engine/html/metric_name.h"
#include "engine/html/metric_tables.h"
#include "engine/html/page.h"
#include "engine/html/run_summary.h"
#include "framework/base/escape_html.h"
#include "framework/base/files.h"
#include "framework/base/text.h"
#include "framework/observe/times/step_clock.h"
#include "framework/observe/times/step_times.h"
#include "framework/observe/times/time_table.h"

namespace phalanx {
namespace {

std::vector<Stretch> stretches_of(const RunRecord& run) {
  return run.summary ? run.summary->stretches : std::vector<Stretch>();
}

Chart chart_of(const RunRecord& run, const std::string& key, const std::string& title) {
  Chart chart{.title = title, .stretches = stretches_of(run)};
  for (const char* split : {"train", "validation", "test"}) {
    const auto curve = run.curves.find(std::string(split) + "/" + key);
    if (curve != run.curves.end()) chart.series.push_back({split, curve->second});
  }
  return chart;
}

std::string curves(const RunRecord& run) {
  std::string text;
  const auto metrics = scalar_metrics(run.metrics);
  for (std::size_t i = 0; i < std::min(metrics.size(), kMaxMetrics); ++i) {
    text += draw(chart_of(run, metrics[i], metrics[i]));
  }
  text += draw(chart_of(run, "learning_rate", "learning rate"));
  const auto rate = run.curves.find("train/samples_per_second");
  if (rate != run.curves.end()) {
    text += draw({.title = "throughput",
                  .unit = " samples/s",
                  .series = {{"train", rate->second}},
                  .stretches = stretches_of(run)});
  }
  Chart phases{.title = "time of a step", .unit = " ms", .stacked = true, .stretches = stretches_of(run)};
  for (int i = 0; i < kPhases; ++i) {
    const std::string name(to_string(static_cast<Phase>(i)));
    const auto curve = run.phases.find(name);
    if (curve != run.phases.end()) phases.series.push_back({name, curve->second});
  }
  text += draw(phases);
  return to_charts(text) + to_folded_lists(run, kMaxMetrics);
}

// Returns one bar of all phases, in which each phase is as wide as its time, and a legend of the colors.
std::string share_bar(const TimeOfStep& time) {
  std::string bar, legend;
  int i = 0;
  for (const auto& [name, spread] : time.phases) {
    const std::string color = format_text("s%d", i++);
    bar += "<i class=\"" + color + format_text("\" style=\"flex:%.4f\"></i>", 1000 * spread.mean);
    legend += "<span class=\"" + color + "\"><i></i>" + escape_html(name) + "</span>";
  }
  return "<div class=\"share\">" + bar + "</div>\n<div class=\"legend\">" + legend + "</div>\n";
}

std::vector<std::string> time_row(const std::string& name, const RankSpread& spread, double whole) {
  const auto by = [](int rank) { return " · rank " + std::to_string(rank); };
  return {name, format_duration(spread.mean), format_text("%.0f %%", whole > 0 ? 100 * spread.mean / whole : 0),
          format_duration(spread.least) + by(spread.least_rank), format_duration(spread.most) + by(spread.most_rank)};
}

std::string step_time(const RunRecord& run) {
  if (!run.summary || !run.summary->step_time) return {};
  const TimeOfStep& time = *run.summary->step_time;
  std::vector<std::vector<std::string>> rows{{"phase", "mean", "share", "least", "most"}};
  for (const auto& [name, spread] : time.phases) rows.push_back(time_row(name, spread, time.whole.mean));
  rows.push_back(time_row("own work", time.own_work, time.whole.mean));
  rows.push_back(time_row("total", time.whole, time.whole.mean));
  const bool calm = time.straggler.find("is the straggler") == std::string::npos;
  return share_bar(time) + to_table(rows) + "<p class=\"note" + (calm ? " calm" : "") + "\">" +
         escape_html(time.straggler) + ".</p>\n";
}

std::string counted(const RunRecord& run) {
  if (!run.summary || run.summary->counted.empty()) return {};
  std::vector<std::vector<std::string>> rows{{"counter on rank 0", "value"}};
  for (const auto& [name, value] : run.summary->counted) {
    std::string words = name;
    std::ranges::replace(words, '_', ' ');
    rows.push_back({words, format_text("%.6g", value)});
  }
  return to_table(rows);
}

std::string provenance(const RunRecord& run) {
  if (!run.summary || run.summary->provenance.empty()) return {};
  std::string text;
  for (const auto& [name, value] : run.summary->provenance) {
    text += "<tr><th>" + escape_html(name) + "</th><td>" + escape_html(value) + "</td></tr>\n";
  }
  return "<div class=\"wide\"><table class=\"words\"><tbody>\n" + text + "</tbody></table></div>\n";
}

// Returns true if nothing shows that the run has gone on since it stood still.
bool stands_still(const RunRecord& run) { return run.hang && !run.summary && !run.moved_on; }

// Returns " at 2026-03-01 16:48 UTC", or nothing for a time that no run has.
std::string at_time(double seconds) {
  constexpr double kYear3000 = 3.25e10;
  if (!(seconds > 0 && seconds < kYear3000)) return {};
  const auto time = static_cast<std::time_t>(seconds);
  std::tm utc{};
  ::gmtime_r(&time, &utc);
  char text[32];
  std::strftime(text, sizeof(text), " at %Y-%m-%d %H:%M UTC", &utc);
  return text;
}

std::string hang(const RunRecord& run) {
  if (!run.hang) return {};
  return to_section(stands_still(run) ? "Why it stands still" : "Why it stood still" + at_time(run.hang->taken),
                    to_hang(*run.hang));
}

// Returns a note if the test split chose the model, because its metrics are then optimistic.
std::string chosen_by_test(const RunRecord& run) {
  if (!run.summary || run.summary->chosen_by != "test") return {};
  return "<p class=\"note\">Test data chose the model: the test split decided when to stop, the learning rate or the "
         "best "
         "checkpoint, so its metrics are optimistic. Set evaluate.validation to hold out training samples for "
         "that.</p>\n";
}

}  // namespace

std::string to_run_page(const RunRecord& run) {
  const std::string name = name_of(run);
  std::vector<std::pair<std::string, std::string>> tiles;
  for (const auto& figure : key_metrics_of(run)) tiles.emplace_back(figure.text, figure.name);
  const std::string state = !run.summary           ? "has not finished"
                            : run.summary->stopped ? "was stopped early"
                                                   : "is complete";
  const auto line = [](const char* type, const std::string& text) {
    return text.empty() ? "" : std::string("<p class=\"") + type + "\">" + escape_html(text) + "</p>\n";
  };
  return to_page(
      name, "<h1>" + escape_html(name) + "</h1>\n" + line("subject", subject_of(run)) + line("result", result_of(run)) +
                line("about", run.path + " · the run " + state) + to_tiles(tiles) + chosen_by_test(run) +
                (stands_still(run) ? hang(run) : "") + to_section("Curves", curves(run)) +
                to_section("Which class is mistaken for which", to_matrices(run)) +
                to_section("Where the time of a step goes", step_time(run)) +
                to_section("What the strategy counted", counted(run)) + (stands_still(run) ? "" : hang(run)) +
                to_section("Provenance", provenance(run)) +
                (run.config.empty()
                     ? ""
                     : "<details><summary>Config</summary><pre>" + escape_html(run.config) + "</pre></details>\n"));
}

void write_run_page(const RunFolder& folder) { write_atomically(folder.report(), to_run_page(read_run(folder))); }

}  // namespace phalanx
