// SPDX-License-Identifier: Apache-2.0
#include "tools/report/comparison.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "engine/html/key_metrics.h"
#include "engine/html/run_summary.h"
#include "framework/base/config/parse.h"
#include "framework/base/error.h"
#include "framework/base/text.h"
#include "framework/observe/times/step_times.h"
#include "framework/observe/times/time_table.h"

namespace phalanx {
namespace {

using Values = std::vector<std::pair<std::string, std::string>>;  // in the order in which they are shown
constexpr std::size_t kMaxColumns = 34;                           // columns of a cell on a terminal

// Returns a row for each name that any of the runs has, in the order of first occurrence.
Rows merge(const std::string& head, const std::vector<std::string>& runs, const std::vector<Values>& values) {
  Rows rows{{head}};
  rows[0].insert(rows[0].end(), runs.begin(), runs.end());
  std::map<std::string, std::size_t> row_of;
  for (std::size_t run = 0; run < values.size(); ++run) {
    for (const auto& [name, value] : values[run]) {
      const auto [row, is_new] = row_of.try_emplace(name, rows.size());
      if (is_new) {
        rows.emplace_back(runs.size() + 1);
        rows.back()[0] = name;
      }
      rows[row->second][run + 1] = value;
    }
  }
  return rows;
}

void flatten(const config::Node& node, const std::string& path, Values& values) {
  using Kind = config::Node::Kind;
  switch (node.kind) {
    case Kind::kMap:
      for (const auto& entry : node.entries) flatten(entry.value, config::path_of(path, entry.key), values);
      return;
    case Kind::kList:
      for (std::size_t i = 0; i < node.items.size(); ++i) {
        flatten(node.items[i], path + "[" + std::to_string(i) + "]", values);
      }
      return;
    case Kind::kScalar:
      values.emplace_back(path, node.text.empty() ? "\"\"" : node.text);
      return;
    case Kind::kNull:
      values.emplace_back(path, "nothing");
  }
}

// Shortens a long text to its end, which is the most informative part: the folder of a path, the last item of a list.
std::string cut_to_fit(const std::string& text) {
  return columns_of(text) <= kMaxColumns ? text : "…" + std::string(last_columns(text, kMaxColumns - 1));
}

}  // namespace

Values flatten_config(const RunRecord& run) {
  std::vector<ConfigProblem> problems;
  const auto tree = config::parse({.text = run.config, .origin = run.path + "/config.yaml"}, problems);
  if (!problems.empty()) throw DataError(ConfigError(std::move(problems)).what());
  Values values;
  flatten(tree, "", values);
  return values;
}

std::vector<std::string> names_of(const std::vector<RunRecord>& runs) {
  std::vector<std::filesystem::path> paths;
  for (const auto& run : runs) {
    auto path = std::filesystem::absolute(run.path).lexically_normal();
    paths.push_back(path.has_filename() ? path : path.parent_path());
  }
  std::vector<std::string> folders, names;
  for (const auto& path : paths) folders.push_back(path.filename());
  for (std::size_t i = 0; i < runs.size(); ++i) {
    names.push_back(std::ranges::count(folders, folders[i]) > 1 ? runs[i].path : folders[i]);
  }
  return names;
}

Rows compare_key_metrics(const std::vector<RunRecord>& runs) {
  std::vector<Values> values;
  for (const auto& run : runs) {
    values.emplace_back();
    for (const auto& figure : key_metrics_of(run)) values.back().emplace_back(figure.name, figure.text);
  }
  return merge("result", names_of(runs), values);
}

Rows compare_step_time(const std::vector<RunRecord>& runs) {
  std::vector<Values> values(runs.size());
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (!runs[i].summary || !runs[i].summary->step_time) continue;
    const TimeOfStep& time = *runs[i].summary->step_time;
    for (const auto& [phase, spread] : time.phases) values[i].emplace_back(phase, format_duration(spread.mean));
    values[i].emplace_back("in all", format_duration(time.whole.mean));
    const RankSpread& work = time.own_work;
    values[i].emplace_back("slowest rank",
                           std::to_string(work.most_rank) + ": " + format_duration(work.most) + " of own work");
  }
  return merge("time of a step", names_of(runs), values);
}

Rows compare_configs(const std::vector<RunRecord>& runs) {
  std::vector<Values> values;
  for (const auto& run : runs) values.push_back(flatten_config(run));
  Rows rows = merge("config", names_of(runs), values), different{rows.front()};
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const bool same = std::ranges::all_of(rows[i].begin() + 2, rows[i].end(),
                                          [&](const std::string& value) { return value == rows[i][1]; });
    if (!same) different.push_back(rows[i]);
  }
  return different;
}

std::string to_text(const std::string& title, const Rows& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], columns_of(cut_to_fit(row[i])));
  }
  std::string text = title.empty() ? "" : title + "\n";
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string cell = cut_to_fit(row[i]);
      const std::string room(widths[i] - columns_of(cell), ' ');
      line += i == 0 ? cell + room : "   " + room + cell;
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

}  // namespace phalanx
