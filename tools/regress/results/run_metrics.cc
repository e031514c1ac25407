// SPDX-License-Identifier: Apache-2.0
#include "tools/regress/results/run_metrics.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <optional>
#include <set>
#include <sstream>

#include "engine/run_folder.h"
#include "framework/base/files.h"
#include "framework/base/json.h"

namespace phalanx::regress {
namespace {

namespace fs = std::filesystem;

constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();
constexpr const char* kWholeRun = "run";

bool exists(const std::string& path) {
  std::error_code none;
  return fs::exists(path, none);
}

double number_of(const JsonValue& value) { return value.is_number() ? value.as<double>() : kNoValue; }

void add_split(const JsonValue& summary, const std::string& split, history::RunResult& result) {
  if (!summary.has(split) || !summary.at(split).is_object()) return;
  for (const auto& [name, value] : summary.at(split).members()) {
    result.metrics.push_back({.split = split, .name = name, .value = number_of(value)});
  }
}

void add_of_run(const JsonValue& summary, history::RunResult& result) {
  const auto add = [&](const std::string& name, double value) {
    result.metrics.push_back({.split = kWholeRun, .name = name, .value = value});
  };
  for (const char* name : {"throughput", "samples_per_second"}) {  // the second one is the name in older summaries
    if (!summary.has(name)) continue;
    add("throughput", number_of(summary.at(name)));
    break;
  }
  if (summary.has("train_seconds")) add("seconds", number_of(summary.at("train_seconds")));
  if (summary.has("steps")) add("steps", number_of(summary.at("steps")));
  if (const auto peaks = summary.get_or<std::vector<double>>("peak_memory", {}); !peaks.empty()) {
    add("peak_memory", std::ranges::max(peaks));
  }
  if (!summary.has("traffic") || !summary.at("traffic").is_object()) return;
  for (const auto& [name, value] : summary.at("traffic").members()) add(name, number_of(value));
}

void add_expectations(const JsonValue& summary, history::RunResult& result) {
  if (!summary.has("expectations")) return;
  for (const auto& one : summary.at("expectations").elements()) {
    const bool has_value = one.has("value") && one.at("value").is_number();
    history::ExpectationResult expectation{.key = one.get<std::string>("key"),
                                           .wanted = one.get<std::string>("wanted"),
                                           .got = one.get<std::string>("got"),
                                           .value = has_value ? std::optional(one.get<double>("value")) : std::nullopt,
                                           .met = one.get<bool>("met")};
    result.expectations.push_back(std::move(expectation));
  }
}

// Adds the metrics of the last line of each split in each epoch.
void add_epochs(const MetricsLines& lines, history::RunResult& result) {
  std::map<std::pair<std::string, std::int64_t>, const LineMetrics*> last;
  for (const auto& [key, line] : lines) last[{key.first, line.epoch}] = &line.metrics;
  for (const auto& [key, metrics] : last) {
    for (const auto& [name, value] : *metrics) {
      result.metrics.push_back({.split = key.first, .name = name, .value = value, .epoch = key.second});
    }
  }
}

}  // namespace

MetricsLines read_lines(const std::string& run_folder) {
  static const std::set<std::string> kOther{"step",    "epoch",         "split",  "samples_per_second",
                                            "seconds", "learning_rate", "step_ms"};
  const std::string path = RunFolder(run_folder).metrics();
  MetricsLines lines;
  if (!exists(path)) return lines;
  std::istringstream text(read_file(path));
  for (std::string line; std::getline(text, line) && !text.eof();) {
    const JsonValue json = parse_json(line, path);
    auto& read = lines[{json.get<std::string>("split"), json.get<std::int64_t>("step")}];
    read.epoch = json.get<std::int64_t>("epoch");
    for (const auto& [name, value] : json.members()) {
      if (!kOther.contains(name) && (value.is_number() || value.is_null())) read.metrics[name] = number_of(value);
    }
  }
  return lines;
}

history::RunResult read_result(const std::string& run_folder) {
  const std::string path = RunFolder(run_folder).summary();
  history::RunResult result;
  if (!exists(path)) return result;
  const JsonValue summary = parse_json(read_file(path), path);
  add_of_run(summary, result);
  for (const char* split : {"train", "validation", "test"}) add_split(summary, split, result);
  add_epochs(read_lines(run_folder), result);
  add_expectations(summary, result);
  return result;
}

std::vector<history::Artefact> list_artefacts(const std::string& run_folder, const std::string& base) {
  std::vector<history::Artefact> artefacts;
  const auto add = [&](const std::string& name, const fs::path& path) {
    if (exists(path)) artefacts.push_back({name, path.lexically_relative(base)});
  };
  for (const char* name : {"report.html", "summary.json", "metrics.jsonl", "config.yaml", "stdout.log", "stderr.log"}) {
    add(name, fs::path(run_folder) / name);
  }
  std::error_code none;
  std::vector<fs::path> logs;
  for (const auto& entry : fs::directory_iterator(RunFolder(run_folder).logs(), none)) {
    if (entry.path().extension() == ".log") logs.push_back(entry.path());
  }
  std::ranges::sort(logs);
  for (const auto& log : logs) add("logs/" + log.filename().string(), log);
  return artefacts;
}

double value_of(const history::RunResult& result, const history::MetricName& metric) {
  const auto found = std::ranges::find_if(result.metrics, [&](const history::MetricValue& one) {
    return one.epoch == -1 && one.split == metric.split && one.name == metric.name;
  });
  return found == result.metrics.end() ? kNoValue : found->value;
}

}  // namespace phalanx::regress
