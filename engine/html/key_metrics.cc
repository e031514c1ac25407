// SPDX-License-Identifier: Apache-2.0
#include "engine/html/key_metrics.h"

#include <filesystem>

#include "engine/html/metric_name.h"
#include "framework/base/config/parse.h"
#include "framework/base/error.h"
#include "framework/base/text.h"

namespace phalanx {
namespace {

constexpr std::size_t kMaxTests = 6;    // number of metrics of the last test that become key metrics
constexpr std::size_t kMaxResults = 3;  // number of these in result_of()

std::string format_metric(const std::string& name, double value) {
  return name == "accuracy" ? format_text("%.2f %%", 100 * value) : format_text("%.4g", value);
}

std::string format_time(double seconds) {
  const auto whole = static_cast<long long>(seconds);
  if (seconds < 60) return format_text("%.1f s", seconds);
  if (seconds < 3600) return format_text("%lld min %02lld s", whole / 60, whole % 60);
  return format_text("%lld h %02lld min", whole / 3600, whole / 60 % 60);
}

// Returns the number with a space between thousands.
std::string grouped(double value) {
  std::string digits = format_text("%.0f", value);
  for (auto i = static_cast<std::ptrdiff_t>(digits.size()) - 3; i > 0; i -= 3) {
    digits.insert(static_cast<std::size_t>(i), 1, ' ');
  }
  return digits;
}

// Returns the choice of a section of the config: "lenet" for "model: lenet" or "model: {name: lenet, ...}".
std::string chosen(const config::Node& config, const std::string& section) {
  const auto* entry = config::find(config, section);
  const auto* name = entry ? config::find(entry->value, "name") : nullptr;
  return name ? name->value.text : entry ? entry->value.text : "";
}

}  // namespace

std::vector<KeyMetric> key_metrics_of(const RunRecord& run) {
  std::vector<KeyMetric> key_metrics;
  for (const auto& name : scalar_metrics(run.metrics)) {
    const auto curve = run.curves.find("test/" + name);
    if (curve == run.curves.end() || key_metrics.size() == kMaxTests) continue;
    key_metrics.push_back({"test " + name, format_metric(name, curve->second.back().second)});
  }
  const auto loss = run.curves.find("train/loss");
  if (loss != run.curves.end()) key_metrics.push_back({"train loss", format_text("%.4g", loss->second.back().second)});
  if (!run.summary) return key_metrics;
  key_metrics.push_back({"samples per second", grouped(run.summary->samples_per_second)});
  if (run.summary->share_of_peak) {
    key_metrics.push_back({"of matrix peak", format_text("%.0f %%", 100 * *run.summary->share_of_peak)});
  }
  key_metrics.push_back({"steps", grouped(static_cast<double>(run.summary->steps))});
  key_metrics.push_back({"ranks", std::to_string(run.summary->ranks)});
  key_metrics.push_back({"time", format_time(run.summary->train_seconds)});
  const auto add_failures = [&](const char* name, std::int64_t count) {
    if (count > 0) key_metrics.push_back({name, std::to_string(count)});
  };
  add_failures("restarts", run.summary->restarts);
  add_failures("lost ranks", run.summary->lost_ranks);
  if (run.summary->lost_seconds > 0) key_metrics.push_back({"time lost", format_time(run.summary->lost_seconds)});
  return key_metrics;
}

std::string subject_of(const RunRecord& run) {
  std::vector<ConfigProblem> problems;  // ignored: parts of a config that cannot be read are missing
  const auto config = config::parse({.text = run.config, .origin = run.path + "/config.yaml"}, problems);
  const std::string model = chosen(config, "model"), dataset = chosen(config, "dataset");
  std::vector<std::string> words;
  if (!model.empty()) words.push_back(model + (dataset.empty() ? "" : " on " + dataset));
  const bool selected = run.summary && !run.summary->strategy.empty();
  const std::string strategy = selected ? run.summary->strategy : chosen(config, "strategy");
  if (!strategy.empty()) words.push_back("strategy " + strategy);
  if (run.summary) words.push_back(std::to_string(run.summary->ranks) + (run.summary->ranks == 1 ? " rank" : " ranks"));
  return join(words, " · ");
}

std::string result_of(const RunRecord& run) {
  std::vector<std::string> words;
  for (const auto& name : scalar_metrics(run.metrics)) {
    const auto curve = run.curves.find("test/" + name);
    if (curve == run.curves.end() || words.size() == kMaxResults) continue;
    words.push_back(name + " " + format_metric(name, curve->second.back().second));
  }
  return words.empty() ? "" : "test " + join(words, ", ");
}

std::string name_of(const RunRecord& run) {
  const auto folder = std::filesystem::path(run.path).lexically_normal();
  if (run.summary && !run.summary->name.empty()) return run.summary->name;
  return (folder.has_filename() ? folder : folder.parent_path()).filename();
}

}  // namespace phalanx
