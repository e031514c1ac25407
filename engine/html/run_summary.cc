// SPDX-License-Identifier: Apache-2.0
#include "engine/html/run_summary.h"

#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/base/json.h"

namespace phalanx {
namespace {

using Json = nlohmann::ordered_json;

RankSpread to_spread(const Json& spread) {
  return {.mean = spread.at("mean_ms").get<double>() / 1000,
          .least = spread.at("least_ms").get<double>() / 1000,
          .most = spread.at("most_ms").get<double>() / 1000,
          .least_rank = spread.at("least_rank").get<int>(),
          .most_rank = spread.at("most_rank").get<int>()};
}

std::optional<TimeOfStep> to_step_time(const Json& summary) {
  if (!summary.contains("step_time") || summary.at("step_time").at("steps").get<std::int64_t>() == 0) return {};
  const Json& time = summary.at("step_time");
  TimeOfStep step{.phases = {},
                  .own_work = to_spread(time.at("own_work")),
                  .whole = to_spread(time.at("whole")),
                  .straggler = time.at("straggler").get<std::string>()};
  for (const auto& [name, spread] : time.at("phases").items()) step.phases.emplace_back(name, to_spread(spread));
  return step;
}

// Adds `change` to the ranks after each of the steps of ranks that were lost, or that have taken part. Returns the
// number of ranks without such a step: the run did not go on, or the summary is an older one.
int add_changes(const Json& ranks, int change, std::map<double, int>& changes) {
  int without_step = 0;
  for (const auto& one : ranks) {
    const double step = one.value("step", -1.0);
    step < 0 ? void(++without_step) : void(changes[step] += change);
  }
  return without_step;
}

// Returns the stretches with another number of ranks than at the beginning. `left`: the ranks at the end of the run.
std::vector<Stretch> to_stretches(const Json& lost, const Json& returned, int left) {
  std::map<double, int> changes;  // of the number of ranks, by step
  int began = left + add_changes(lost, -1, changes) - add_changes(returned, 1, changes);
  for (const auto& [_, change] : changes) began -= change;
  std::vector<Stretch> stretches;
  int ranks = began;
  for (const auto& [step, change] : changes) {
    if (change == 0) continue;
    if (ranks != began) stretches.back().to = step;
    ranks += change;
    if (ranks == began) continue;
    stretches.push_back({.from = step, .to = std::numeric_limits<double>::infinity(), .ranks = ranks});
  }
  return stretches;
}

RunSummary to_summary(const Json& json) {
  RunSummary summary{.name = json.value("name", ""),
                     .strategy = json.contains("strategy") ? json.at("strategy").value("name", "") : "",
                     .stopped = json.value("stopped", false),
                     .chosen_by = json.value("chosen_by", ""),
                     .samples_per_second = json.value("samples_per_second", 0.0),
                     .train_seconds = json.value("train_seconds", 0.0),
                     .steps = json.value("steps", std::int64_t{0}),
                     .ranks = json.value("ranks", 0),
                     .restarts = json.value("restarts", std::int64_t{0}),
                     .lost_ranks = static_cast<std::int64_t>(json.value("lost_ranks", Json::array()).size()),
                     .lost_seconds = json.value("lost_seconds", 0.0),
                     .step_time = to_step_time(json),
                     .stretches = to_stretches(json.value("lost_ranks", Json::array()),
                                               json.value("returned_ranks", Json::array()), json.value("ranks", 0))};
  if (json.contains("strategy")) {
    for (const auto& [name, value] : json.at("strategy").items()) {
      if (value.is_number()) summary.counted.emplace_back(name, value.get<double>());
    }
  }
  if (json.contains("matrix_products") && json.at("matrix_products").is_object()) {
    summary.share_of_peak = json.at("matrix_products").at("share_of_peak").get<double>();
  }
  if (!json.contains("provenance")) return summary;
  for (const auto& [name, value] : json.at("provenance").items()) {
    summary.provenance.emplace_back(name, value.get<std::string>());
  }
  return summary;
}

}  // namespace

RunSummary read_summary(const std::string& path) {
  const std::string text = read_file(path);
  try {
    return to_summary(parse_json(text, "it").raw());
  } catch (const std::exception& error) {
    throw DataError(path + ": is not a run summary: " + error.what());
  }
}

}  // namespace phalanx
