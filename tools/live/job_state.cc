// SPDX-License-Identifier: Apache-2.0
#include "tools/live/job_state.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <string_view>

#include "framework/base/error.h"
#include "framework/base/http/http_get.h"
#include "framework/base/job_secret.h"
#include "framework/base/printable.h"
#include "framework/observe/times/step_clock.h"
#include "tools/live/prometheus_text.h"

namespace phalanx {
namespace {

constexpr int kMaxRanks = 1 << 20;
constexpr double kTimeout = 5;  // seconds

int to_rank(const std::string& text) {
  int rank = -1;
  std::from_chars(text.data(), text.data() + text.size(), rank);
  return rank;
}

std::optional<std::size_t> to_phase(std::string_view text) {
  for (std::size_t i = 0; i < kPhases; ++i) {
    if (to_string(static_cast<Phase>(i)) == text) return i;
  }
  return {};
}

void add_step_seconds(JobState& state, const PrometheusSample& sample) {
  const auto phase = to_phase(sample.label("phase"));
  const int rank = to_rank(sample.label("rank"));
  if (!phase || rank < 0 || rank >= state.ranks) return;  // of a newer version
  auto& ranks = state.times.ranks;
  if (ranks.empty()) ranks.resize(static_cast<std::size_t>(state.ranks));
  ranks[static_cast<std::size_t>(rank)][*phase] = sample.value;
  state.times.steps = 1;  // each time is the time of one step
}

void add_sample(JobState& state, const PrometheusSample& sample) {
  const std::string& name = sample.name;
  if (name == "phalanx_step") state.step = static_cast<std::int64_t>(sample.value);
  if (name == "phalanx_planned_steps") state.planned_steps = static_cast<std::int64_t>(sample.value);
  if (name == "phalanx_epoch") state.epoch = static_cast<std::int64_t>(sample.value);
  if (name == "phalanx_training_seconds") state.seconds = sample.value;
  if (name == "phalanx_learning_rate") state.learning_rate = sample.value;
  if (name == "phalanx_measured_timestamp_seconds") state.measured_at = sample.value;
  if (name == "phalanx_step_seconds") add_step_seconds(state, sample);
  if (name == "phalanx_samples_per_second" && sample.label("split") == "train") state.samples_per_second = sample.value;
  if (name != "phalanx_metric") return;
  state.metrics.emplace_back(printable(sample.label("split") + "/" + sample.label("name")), sample.value);
}

}  // namespace

JobState parse_job_state(std::string_view text, const std::string& source) {
  JobState state{.source = source, .name = {}};
  const auto samples = parse_prometheus_text(text, source);
  for (const auto& sample : samples) {
    if (sample.name != "phalanx_run_info") continue;
    state.name = printable(sample.label("name"));
    state.ranks = to_rank(sample.label("ranks"));
  }
  if (state.ranks < 1 || state.ranks > kMaxRanks) throw DataError(source + ": has no metrics of a run of Phalanx");
  for (const auto& sample : samples) add_sample(state, sample);
  std::ranges::stable_partition(state.metrics, [](auto& metric) { return metric.first.starts_with("train/"); });
  return state;
}

JobState fetch_job_state(const std::string& address) {
  HttpAddress parsed = parse_http_address(address);
  if (parsed.path == "/") parsed.path = "/metrics";
  return parse_job_state(http_get(parsed, kTimeout, job_secret()), address);
}

}  // namespace phalanx
