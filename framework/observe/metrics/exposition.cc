// SPDX-License-Identifier: Apache-2.0
#include "framework/observe/metrics/exposition.h"

#include <charconv>
#include <cmath>
#include <utility>
#include <vector>

#include "framework/base/version.h"
#include "framework/base/wall_clock.h"

namespace phalanx {
namespace {

using Labels = std::vector<std::pair<std::string, std::string>>;

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '\\' || c == '"') result += '\\';
    result += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return result;
}

std::string number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  char text[32];
  return {text, std::to_chars(text, text + sizeof(text), value).ptr};
}

/// One metric with all its samples. Its text is empty if there are no samples.
class Gauge {
 public:
  Gauge(std::string name, const std::string& help)
      : name_("phalanx_" + std::move(name)), head_("# HELP " + name_ + " " + help + "\n# TYPE " + name_ + " gauge\n") {}

  void add(double value, const Labels& labels = {}) {
    samples_ += name_;
    for (std::size_t i = 0; i < labels.size(); ++i) {
      samples_ += (i == 0 ? "{" : ",") + labels[i].first + "=\"" + escaped(labels[i].second) + "\"";
    }
    samples_ += (labels.empty() ? " " : "} ") + number(value) + "\n";
  }
  std::string text() const { return samples_.empty() ? "" : head_ + samples_; }

 private:
  std::string name_, head_, samples_;
};

std::string training(const MetricsRecord& train) {
  Gauge step("step", "Updates completed."), epoch("epoch", "Epoch of the last step, from 0.");
  Gauge seconds("training_seconds", "Seconds since training began.");
  Gauge rate("learning_rate", "Learning rate of the last step.");
  Gauge times("step_seconds", "Mean seconds of a step by phase and rank.");
  step.add(static_cast<double>(train.step));
  epoch.add(static_cast<double>(train.epoch));
  seconds.add(train.seconds);
  if (train.learning_rate) rate.add(*train.learning_rate);
  for (std::size_t rank = 0; train.times && rank < train.times->ranks.size(); ++rank) {
    for (std::size_t i = 0; i < kPhases; ++i) {
      times.add(train.times->ranks[rank][i],
                {{"phase", std::string(to_string(static_cast<Phase>(i)))}, {"rank", std::to_string(rank)}});
    }
  }
  return step.text() + epoch.text() + seconds.text() + rate.text() + times.text();
}

}  // namespace

void Exposition::add(const MetricsRecord& record) {
  last[record.split] = record;
  if (record.failures) failures = *record.failures;
  if (record.planned_steps > 0) planned_steps = record.planned_steps;
  measured_at = wall_seconds();
}

std::string to_text(const Exposition& exposition) {
  Gauge info("run_info", "Information about the run; always 1.");
  info.add(1, {{"name", exposition.run}, {"ranks", std::to_string(exposition.ranks)}, {"version", kVersion}});
  Gauge metrics("metric", "Last value of a metric.");
  Gauge rates("samples_per_second", "Samples per second of all ranks.");
  for (const auto& [split, last] : exposition.last) {
    rates.add(last.samples_per_second, {{"split", split}});
    for (const auto& [name, value] : last.metrics) metrics.add(value, {{"split", split}, {"name", name}});
  }
  Gauge planned("planned_steps", "Updates of the whole run.");
  if (exposition.planned_steps > 0) planned.add(static_cast<double>(exposition.planned_steps));
  Gauge restarts("restarts", "How often the job was started again after a failure.");
  restarts.add(static_cast<double>(exposition.restarts));
  Gauge lost("lost_ranks", "Ranks that the job has lost and gone on without.");
  lost.add(static_cast<double>(exposition.failures.ranks));
  Gauge returned("returned_ranks", "Ranks that have taken the places of lost ones.");
  returned.add(static_cast<double>(exposition.failures.returned));
  Gauge cost("lost_seconds", "Seconds that lost ranks and restarts have cost.");
  cost.add(exposition.failures.seconds);
  Gauge goodput("goodput", "Share of the time since the start of the job that they have not cost.");
  goodput.add(exposition.failures.goodput);
  Gauge measured("measured_timestamp_seconds", "Time of the last measurement, in seconds since 1970.");
  if (exposition.measured_at > 0) measured.add(exposition.measured_at);
  const auto train = exposition.last.find("train");
  return info.text() + planned.text() + restarts.text() + lost.text() + returned.text() + cost.text() + goodput.text() +
         metrics.text() + rates.text() + (train == exposition.last.end() ? "" : training(train->second)) +
         measured.text();
}

}  // namespace phalanx
