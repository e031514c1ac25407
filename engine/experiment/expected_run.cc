// SPDX-License-Identifier: Apache-2.0
#include "engine/experiment/expected_run.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstddef>
#include <functional>
#include <string>
#include <utility>

#include "framework/base/text.h"

namespace phalanx {
namespace {

using Results = std::vector<ExpectationResult>;

/// Returns the value of a metric of a split; nothing if it was not measured.
using Lookup = std::function<std::optional<double>(const std::string& split, const std::string& metric)>;

std::string in_digits(double value) { return format_text("%.6g", value); }

std::optional<double> value_of(const Metrics& metrics, const std::string& name) {
  const auto found = std::ranges::find(metrics, name, &Metrics::value_type::first);
  return found == metrics.end() ? std::nullopt : std::optional(found->second);
}

// Adds bounds of metrics. `missing` says why a metric has no value.
void add_splits(Results& results, const std::string& prefix, const SplitBounds& bounds, const Lookup& lookup,
                const std::string& missing) {
  for (const auto& [split, metrics] : {std::pair("train", &bounds.train), std::pair("validation", &bounds.validation),
                                       std::pair("test", &bounds.test)}) {
    for (const auto& [metric, limits] : *metrics) {
      const std::string key = prefix + split + "." + metric;
      const auto value = lookup(split, metric);
      const auto add = [&](const char* bound, const char* relation, double limit, bool within) {
        results.push_back({.key = key + bound,
                           .wanted = relation + in_digits(limit),
                           .got = value ? in_digits(*value) : missing,
                           .value = value,
                           .met = value && within});
      };
      if (limits.min) add(".min", ">= ", *limits.min, value >= limits.min);
      if (limits.max) add(".max", "<= ", *limits.max, value <= limits.max);
    }
  }
}

Lookup lookup_at_end(const MeasuredRun& run) {
  return [&run](const std::string& split, const std::string& metric) {
    return value_of(split == "train" ? run.train : split == "validation" ? run.validation : run.test, metric);
  };
}

Lookup lookup_in_epoch(const MeasuredRun& run, const std::string& epoch) {
  return [&run, epoch](const std::string& split, const std::string& metric) {
    return run.milestones.in_epoch(epoch, split, metric);
  };
}

void add_reach(Results& results, std::size_t index, const ReachConfig& reach, const MeasuredRun& run) {
  const std::string key = "reach[" + std::to_string(index) + "]";
  const auto reached = run.milestones.reached(reach);
  const auto best = run.milestones.best(reach);
  const std::string missing = best ? "not reached, the best was " + in_digits(*best) : "no measurement";
  const auto add = [&](const char* unit, double limit, double value) {
    results.push_back({.key = key + "." + unit,
                       .wanted = describe(reach) + " within " + in_digits(limit) + " " + unit,
                       .got = reached ? "reached within " + in_digits(value) + " " + unit : missing,
                       .value = reached ? std::optional(value) : std::nullopt,
                       .met = reached && value <= limit});
  };
  if (reach.seconds) add("seconds", *reach.seconds, reached ? reached->seconds : 0);
  if (reach.epochs) add("epochs", *reach.epochs, reached ? reached->epochs : 0);
}

void add_throughput(Results& results, double min, double samples_per_second) {
  results.push_back({.key = "throughput.min",
                     .wanted = ">= " + in_digits(min) + " samples/s",
                     .got = in_digits(samples_per_second) + " samples/s",
                     .value = samples_per_second,
                     .met = samples_per_second >= min});
}

std::string in_bytes(std::int64_t bytes) { return format_bytes(bytes) + " (" + std::to_string(bytes) + " bytes)"; }

void add_memory(Results& results, std::int64_t max, const std::vector<std::int64_t>& peaks) {
  ExpectationResult result{.key = "memory.max", .wanted = "<= " + in_bytes(max), .got = "no measurement"};
  const auto most = std::ranges::max_element(peaks);
  if (most != peaks.end() && *most > 0) {
    result.got = in_bytes(*most) + " on rank " + std::to_string(most - peaks.begin());
    result.value = static_cast<double>(*most);
    result.met = *most <= max;
  }
  results.push_back(std::move(result));
}

bool near(std::int64_t seen, std::int64_t planned, double tolerance) {
  return static_cast<double>(std::abs(seen - planned)) <= tolerance * static_cast<double>(planned);
}

// Adds the bytes and the collectives of a step and, if no difference is allowed, each kind of operation.
void add_traffic(Results& results, double tolerance, const std::optional<TrafficComparison>& traffic) {
  const auto add = [&](const char* key, std::int64_t StepCommunication::* member) {
    ExpectationResult result{.key = key, .wanted = "as planned", .got = "no ordinary step among those of the run"};
    if (traffic) {
      const auto planned = traffic->planned.*member, seen = traffic->seen.*member;
      result = {.key = key,
                .wanted = format_text("%" PRId64 " as planned", planned) +
                          (tolerance > 0 ? ", with a tolerance of " + in_digits(tolerance) : ""),
                .got = std::to_string(seen),
                .value = static_cast<double>(seen),
                .met = near(seen, planned, tolerance)};
    }
    results.push_back(std::move(result));
  };
  add("traffic.bytes_per_step", &StepCommunication::bytes);
  add("traffic.collectives_per_step", &StepCommunication::collectives);
  if (tolerance > 0 || !traffic) return;
  results.push_back({.key = "traffic.operations",
                     .wanted = "as planned",
                     .got = traffic->differences.empty() ? "as planned" : traffic->differences,
                     .met = traffic->differences.empty()});
}

}  // namespace

std::vector<ExpectationResult> compare(const ExpectConfig& expect, const MeasuredRun& run) {
  Results results;
  add_splits(results, "", expect, lookup_at_end(run), "no measurement");
  for (const auto& [epoch, bounds] : expect.epochs) {
    add_splits(results, "epochs." + epoch + ".", bounds, lookup_in_epoch(run, epoch),
               "no measurement in this epoch; the run ended in epoch " + std::to_string(run.epochs));
  }
  for (std::size_t i = 0; i < expect.reach.size(); ++i) add_reach(results, i, expect.reach[i], run);
  if (expect.throughput.min) add_throughput(results, *expect.throughput.min, run.samples_per_second);
  if (!expect.memory.max.empty()) add_memory(results, parse_bytes(expect.memory.max), run.peak_memory);
  if (expect.traffic.tolerance) add_traffic(results, *expect.traffic.tolerance, run.traffic);
  return results;
}

}  // namespace phalanx
