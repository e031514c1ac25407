// SPDX-License-Identifier: Apache-2.0
#include "engine/html/run_record.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/base/json.h"

namespace phalanx {
namespace {

using Json = nlohmann::ordered_json;

// Keys of a line of metrics.jsonl that are not metrics.
const std::set<std::string> kOther{"step",    "epoch",         "split",  "samples_per_second",
                                   "seconds", "learning_rate", "step_ms"};

// Returns NaN for null, because JSON has null for values that are not finite.
double number(const Json& value) { return value.is_number() ? value.get<double>() : NAN; }

void add_line(RunRecord& run, const Json& line) {
  const auto step = line.at("step").get<double>();
  const auto split = line.at("split").get<std::string>();
  for (const auto& [key, value] : line.items()) {
    if (kOther.count(key) == 0 && std::ranges::find(run.metrics, key) == run.metrics.end()) {
      run.metrics.push_back(key);
    }
    if (kOther.count(key) == 0 || key == "samples_per_second" || key == "learning_rate") {
      run.curves[split + "/" + key].emplace_back(step, number(value));
    }
  }
  if (!line.contains("step_ms")) return;
  for (const auto& [phase, value] : line.at("step_ms").items()) run.phases[phase].emplace_back(step, number(value));
}

void read_metrics(RunRecord& run, const std::string& path) {
  std::istringstream text(read_file(path));
  int number = 0;
  for (std::string line; std::getline(text, line);) {
    ++number;
    try {
      add_line(run, parse_json(line, "it").raw());
    } catch (const std::exception& error) {
      if (text.eof()) return;  // a run may still be writing this line
      throw DataError(path + ":" + std::to_string(number) + ": is not a line of metrics: " + error.what());
    }
  }
}

// Returns when a file was written, in seconds since the epoch.
double time_of(const std::string& path) {
  const auto written = std::chrono::file_clock::to_sys(std::filesystem::last_write_time(path));
  return std::chrono::duration<double>(written.time_since_epoch()).count();
}

}  // namespace

RunRecord read_run(const RunFolder& folder) {
  std::error_code none;
  if (!std::filesystem::is_directory(folder.path(), none)) {
    throw DataError(folder.path() + ": there is no such folder; name the folder of a run, such as runs/quickstart-...");
  }
  const std::string hang = folder.logs() + "/" + kHangFile;
  const bool stood_still = std::filesystem::exists(hang, none);
  const bool has_metrics = std::filesystem::exists(folder.metrics(), none);
  if (!has_metrics && !stood_still) {
    throw DataError(folder.path() + ": is not a run folder: it has no metrics.jsonl");
  }
  RunRecord run{.path = folder.path(), .config = {}, .summary = {}};
  if (std::filesystem::exists(folder.summary(), none)) run.summary = read_summary(folder.summary());
  if (std::filesystem::exists(folder.config(), none)) run.config = read_file(folder.config());
  if (has_metrics) read_metrics(run, folder.metrics());
  if (stood_still) run.hang = job_picture_from_json(read_file(hang), hang);
  run.moved_on = stood_still && has_metrics && time_of(folder.metrics()) > run.hang->taken;
  return run;
}

}  // namespace phalanx
