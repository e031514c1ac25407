// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/config/config_problems.h"
#include "engine/config/section_checks.h"
#include "framework/base/text.h"

namespace phalanx {
namespace {

// Returns true if a metric is always between 0 and 1.
bool is_share(const std::string& metric) {
  constexpr std::array kShares{"accuracy", "auc", "mean_average_precision"};
  return std::ranges::count(kShares, metric) > 0;
}

void check_bounds(std::vector<ConfigProblem>& problems, const std::string& section, const MetricBounds& expected) {
  for (const auto& [metric, bounds] : expected) {
    const std::string key = section + "." + metric;
    refuse_if(problems, !bounds.min && !bounds.max, key.c_str(), "needs a min, a max or both");
    refuse_if(problems, bounds.min && bounds.max && *bounds.min > *bounds.max, key.c_str(),
              "its min is above its max, so no value is within both");
    const bool beyond = (bounds.min && *bounds.min > 1) || (bounds.max && *bounds.max < 0);
    refuse_if(problems, beyond && is_share(metric), key.c_str(), "cannot be met: it is always between 0 and 1");
  }
}

void check_splits(std::vector<ConfigProblem>& problems, const std::string& section, const SplitBounds& expected) {
  check_bounds(problems, section + ".train", expected.train);
  check_bounds(problems, section + ".validation", expected.validation);
  check_bounds(problems, section + ".test", expected.test);
}

std::optional<std::int64_t> whole_number(const std::string& text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

void check_epoch(std::vector<ConfigProblem>& problems, const ExperimentConfig& config, const std::string& name,
                 const SplitBounds& expected) {
  const std::string key = "expect.epochs." + name;
  check_splits(problems, key, expected);
  const auto epoch = whole_number(name);
  const auto last = config.train.epochs, every = config.evaluate.every_epochs;
  if (!epoch || *epoch < 1 || *epoch > last) {
    refuse_if(problems, true, key.c_str(),
              "must be the number of an epoch, from 1 to train.epochs: " + std::to_string(last));
    return;
  }
  const bool evaluated = *epoch == last || (every > 0 && *epoch % every == 0);
  refuse_if(problems, !evaluated && !(expected.validation.empty() && expected.test.empty()), key.c_str(),
            "no evaluation follows this epoch, since evaluate.every_epochs is " + std::to_string(every));
  refuse_if(problems, *epoch != last && config.evaluate.validation > 0 && !expected.test.empty(),
            (key + ".test").c_str(),
            "only the final model is tested, since evaluate.validation holds out samples for the evaluations before");
}

void check_reach(std::vector<ConfigProblem>& problems, const std::string& key, const ReachConfig& reach) {
  refuse_if(problems, reach.metric.empty(), key.c_str(), "needs the name of a metric");
  refuse_if(problems, !reach.value, key.c_str(), "needs a value");
  refuse_if(problems, !reach.seconds && !reach.epochs, key.c_str(), "needs seconds, epochs or both");
  const bool beyond = reach.value && (*reach.value < 0 || *reach.value > 1);
  refuse_if(problems, beyond && is_share(reach.metric), key.c_str(),
            "cannot be met: " + reach.metric + " is always between 0 and 1");
}

void check_memory(std::vector<ConfigProblem>& problems, const std::string& max) {
  if (max.empty()) return;
  try {
    refuse_if(problems, parse_bytes(max) <= 0, "expect.memory.max", "must be above 0");
  } catch (const ConfigError& error) {
    refuse_if(problems, true, "expect.memory.max", error.what());
  }
}

// Checks what tools:chaos needs of a run.
void check_faults_of(std::vector<ConfigProblem>& problems, const ExperimentConfig& config) {
  const auto& faults = config.expect.faults;
  refuse_if(
      problems, faults.survived > faults.injected, "expect.faults.survived",
      std::to_string(faults.survived) + " is more than expect.faults.injected: " + std::to_string(faults.injected));
  if (faults.injected == 0) return;
  refuse_if(problems, config.checkpoint.every_steps == 0, "expect.faults.injected",
            "needs a run that saves checkpoints, from which it goes on after a fault; set checkpoint.every_steps");
  refuse_if(problems, !config.launch.hosts.empty() || config.launch.with == "srun", "expect.faults.injected",
            config.launch.hosts.empty() ? "disturbs runs on one machine, but launch.with is srun"
                                        : "disturbs runs on one machine, but launch.hosts is set");
}

// Checks the expectations that tools:regress checks.
void check_other_runs(std::vector<ConfigProblem>& problems, const ExperimentConfig& config) {
  const auto& expect = config.expect;
  const SameAsConfig none;
  refuse_if(problems,
            expect.same_as.config.empty() &&
                (expect.same_as.tolerance != none.tolerance || expect.same_as.steps != none.steps),
            "expect.same_as.config", "is missing: name the config whose losses are the same");
  refuse_if(problems, expect.resume_at && (*expect.resume_at == 0 || *expect.resume_at == 1), "expect.resume_at",
            "must be above 0 and below 1, so that there are steps before and after");
  refuse_if(problems, expect.scaling.min && training_ranks(config) == 1, "expect.scaling.min",
            "compares with one rank, but this run trains on one rank itself");
  check_faults_of(problems, config);
}

}  // namespace

void check_expectations(std::vector<ConfigProblem>& problems, const ExperimentConfig& config) {
  const auto& expect = config.expect;
  check_splits(problems, "expect", expect);
  for (const auto& [name, expected] : expect.epochs) check_epoch(problems, config, name, expected);
  for (std::size_t i = 0; i < expect.reach.size(); ++i) {
    check_reach(problems, "expect.reach[" + std::to_string(i) + "]", expect.reach[i]);
  }
  check_memory(problems, expect.memory.max);
  check_other_runs(problems, config);
}

}  // namespace phalanx
