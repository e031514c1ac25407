// SPDX-License-Identifier: Apache-2.0
#include "engine/hooks/milestones.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>

#include <algorithm>

#include "framework/base/metrics.h"
#include "framework/base/text.h"

namespace phalanx {
namespace {

const MetricBounds& bounds_of(const SplitBounds& bounds, const std::string& split) {
  if (split == "train") return bounds.train;
  return split == "validation" ? bounds.validation : bounds.test;
}

std::string key_in_epoch(const std::string& epoch, const std::string& split, const std::string& metric) {
  return "epochs." + epoch + "." + split + "." + metric;
}

std::string key_of(const ReachConfig& reach, const char* what) { return "reach." + describe(reach) + "." + what; }

bool better(const ReachConfig& reach, double value, double than) {
  return reach.best == "lowest" ? value < than : value > than;
}

}  // namespace

std::string describe(const ReachConfig& reach) {
  return reach.split + "." + reach.metric + (reach.best == "lowest" ? " <= " : " >= ") +
         format_text("%.10g", reach.value.value_or(0));
}

void Milestones::add(const MetricsRecord& record) {
  const std::string epoch = std::to_string(record.epoch + 1);
  if (const auto bounds = expect_.epochs.find(epoch); bounds != expect_.epochs.end()) {
    add_epoch(epoch, bounds_of(bounds->second, record.split), record);
  }
  for (const auto& reach : expect_.reach) {
    if (reach.split == record.split) add_reach(reach, record);
  }
}

void Milestones::add_epoch(const std::string& epoch, const MetricBounds& bounds, const MetricsRecord& record) {
  for (const auto& [metric, value] : record.metrics) {
    if (bounds.contains(metric)) values_[key_in_epoch(epoch, record.split, metric)] = value;
  }
}

void Milestones::add_reach(const ReachConfig& reach, const MetricsRecord& record) {
  const auto found = std::ranges::find(record.metrics, reach.metric, &Metrics::value_type::first);
  if (found == record.metrics.end()) return;
  const double value = found->second;
  if (const auto last = best(reach); !last || better(reach, value, *last)) values_[key_of(reach, "best")] = value;
  if (reached(reach) || !(value == *reach.value || better(reach, value, *reach.value))) return;
  values_[key_of(reach, "seconds")] = record.seconds;
  values_[key_of(reach, "epochs")] = static_cast<double>(record.epoch + 1);
}

std::optional<double> Milestones::value(const std::string& key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<double> Milestones::in_epoch(const std::string& epoch, const std::string& split,
                                           const std::string& metric) const {
  return value(key_in_epoch(epoch, split, metric));
}

std::optional<Milestones::Reached> Milestones::reached(const ReachConfig& reach) const {
  const auto seconds = value(key_of(reach, "seconds")), epochs = value(key_of(reach, "epochs"));
  if (!seconds || !epochs) return std::nullopt;
  return Reached{*seconds, *epochs};
}

std::optional<double> Milestones::best(const ReachConfig& reach) const { return value(key_of(reach, "best")); }

CheckpointPart Milestones::part() {
  return {.name = "milestones",
          .save =
              [this] {
                NamedTensors saved;
                for (const auto& [key, value] : values_) saved.emplace_back(key, at::full({1}, value, at::kDouble));
                return saved;
              },
          .load =
              [this](const SavedRanks& saved) {
                values_.clear();
                for (const auto& [key, tensor] : saved.of(0)) values_[key] = tensor.item<double>();
              },
          .every_rank = false};
}

}  // namespace phalanx
