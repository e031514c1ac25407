// SPDX-License-Identifier: Apache-2.0
#include "tools/dashboard/job_json.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <nlohmann/json.hpp>

#include "framework/observe/times/step_clock.h"
#include "framework/observe/times/step_times.h"

namespace phalanx {
namespace {

using Json = nlohmann::ordered_json;

Json finite(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json rank_json(const StepTimes& times, std::size_t rank) {
  const StepTimes one{.steps = times.steps, .ranks = {times.ranks[rank]}};
  Json seconds = Json::array();
  for (const double phase : times.ranks[rank]) seconds.push_back(finite(phase));
  return {{"rank", rank}, {"own_work", finite(one.own_work().mean)}, {"seconds", seconds}};
}

Json job_json(const JobState& job, double now) {
  Json metrics = Json::array(), phases = Json::array(), ranks = Json::array(), notes = Json::array();
  for (const auto& [name, value] : job.metrics) metrics.push_back({name, finite(value)});
  for (int i = 0; i < kPhases; ++i) phases.push_back(std::string(to_string(static_cast<Phase>(i))));
  for (std::size_t rank = 0; rank < job.times.ranks.size(); ++rank) ranks.push_back(rank_json(job.times, rank));
  for (const auto& note : job.notes) notes.push_back(note);
  return {{"name", job.name},
          {"folder", job.source},
          {"died", job.phase == JobPhase::kDied},
          {"step", job.step},
          {"steps", job.planned_steps},
          {"throughput", finite(job.samples_per_second)},
          {"metrics", metrics},
          {"age", finite(std::max(0.0, now - job.measured_at))},
          {"straggler", job.times.ranks.empty() ? "" : job.times.straggler()},
          {"waits", notes},
          {"phases", phases},
          {"ranks", ranks}};
}

}  // namespace

std::string to_json(const std::vector<JobState>& jobs, double now) {
  Json all = Json::array();
  for (const auto& job : jobs) all.push_back(job_json(job, now));
  return all.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace phalanx
