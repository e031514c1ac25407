// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <utility>

#include "engine/config/experiment_config.h"
#include "framework/base/config/override.h"
#include "framework/base/error.h"
#include "framework/comm/backend.h"
#include "tools/config/load_checked.h"
#include "tools/regress/suite/matrix.h"
#include "tools/regress/suite/planned_case.h"

namespace phalanx::regress {
namespace {

// A combination of an entry, while it is checked.
struct Candidate {
  PlannedCase planned;
  Combination combination;
  std::vector<ConfigProblem> problems{};  // of the config; empty: it is accepted
};

int hosts_in(const Combination& combination) {
  const auto found = std::ranges::find(combination, kHosts, &Coordinate::axis);
  return found == combination.end() ? 1 : std::atoi(found->value.c_str());
}

SameAs same_as_of(const SameAsConfig& wanted, const PlannedCase& planned) {
  const auto folder = std::filesystem::path(planned.config).parent_path();
  SameAs same_as{.config = (folder / wanted.config).lexically_normal(),
                 .overrides = without_placement(planned.overrides),
                 .tolerance = wanted.tolerance,
                 .steps = wanted.steps};
  if (wanted.ranks > 0) same_as.overrides.push_back("launch.ranks=" + std::to_string(wanted.ranks));
  ExperimentConfig config;
  load_checked(config, {same_as.config, same_as.overrides});
  same_as.ranks = static_cast<int>(config.launch.ranks);
  return same_as;
}

Relations relations_of(const ExperimentConfig& config, const PlannedCase& planned) {
  const ExpectConfig& expect = config.expect;
  Relations relations{.resume_at = expect.resume_at,
                      .scaling = expect.scaling.min,
                      .of_median = expect.throughput.of_median,
                      .nights = expect.throughput.nights};
  if (!expect.same_as.config.empty()) relations.same_as = same_as_of(expect.same_as, planned);
  const auto& faults = expect.faults;
  if (faults.injected > 0) {
    relations.faults = {.injected = faults.injected, .survived = faults.least(), .seed = config.seed};
  }
  return relations;
}

// Loads the config, and fills in the values that follow from it.
void load(Candidate& candidate) {
  PlannedCase& planned = candidate.planned;
  try {
    ExperimentConfig config;
    load_checked(config, {planned.config, planned.overrides});
    planned.ranks = static_cast<int>(config.launch.ranks);
    planned.survives_lost_host = config.faults.shrinks() && !backend_traits(config.backend).mpi;
    planned.relations = relations_of(config, planned);
    if (planned.relations.faults && planned.hosts > 1) {
      candidate.problems.push_back({.key = "hosts", .message = "expect.faults disturbs runs on one host"});
    }
    if (planned.hosts < 1 || planned.ranks % planned.hosts != 0) {
      candidate.problems.push_back({.key = "hosts",
                                    .message = std::to_string(planned.ranks) + " ranks cannot be spread evenly over " +
                                               std::to_string(planned.hosts) + " hosts"});
    }
  } catch (const ConfigError& error) {
    candidate.problems = error.problems();
  }
  if (!candidate.problems.empty()) planned.refused = ConfigError(candidate.problems).what();
}

std::vector<Candidate> commands_of(const Suite& suite, std::size_t index) {
  const EntryConfig& entry = suite.config.cases[index];
  std::vector<Candidate> candidates;
  for (const auto& command : entry.commands) {
    candidates.push_back({.planned = {.name = name_of_case(command.name, entry.label, {}),
                                      .command = command.run,
                                      .folder = std::filesystem::absolute(suite.root()).lexically_normal(),
                                      .time_limit = entry.time_limit.value_or(suite.config.time_limit),
                                      .retries = static_cast<int>(suite.config.retries),
                                      .alone = entry.alone},
                          .combination = {}});
  }
  return candidates;
}

std::vector<Candidate> candidates_of(const Suite& suite, std::size_t index, const std::vector<std::string>& overrides) {
  const EntryConfig& entry = suite.config.cases[index];
  if (!entry.commands.empty()) return commands_of(suite, index);
  std::vector<std::string> settings;
  for (const auto& [key, setting] : entry.set) settings.push_back(key + "=" + setting.value);
  std::vector<Candidate> candidates;
  for (const auto& file : suite.files[index]) {
    for (const auto& combination : combinations(entry.matrix, entry.exclude)) {
      PlannedCase planned{.name = name_of_case(file, entry.label, combination),
                          .config = file,
                          .overrides = settings,
                          .hosts = hosts_in(combination),
                          .time_limit = entry.time_limit.value_or(suite.config.time_limit),
                          .retries = static_cast<int>(suite.config.retries),
                          .alone = entry.alone,
                          .skip_if_refused = entry.refused == "skip"};
      for (const auto& more : {overrides_of(combination), overrides}) {
        planned.overrides.insert(planned.overrides.end(), more.begin(), more.end());
      }
      candidates.push_back({std::move(planned), combination});
      load(candidates.back());
    }
  }
  return candidates;
}

// Returns the problem that an assignment of this key is not in the schema, or nullptr.
const ConfigProblem* unknown_key(const Candidate& candidate, const std::string& key) {
  for (const auto& assignment : candidate.planned.overrides) {
    if (!assignment.starts_with(key + "=")) continue;
    for (const auto& problem : candidate.problems) {
      const bool unknown = problem.message.starts_with("unknown key");
      if (unknown && problem.origin == config::origin_of(assignment)) return &problem;
    }
  }
  return nullptr;
}

// Adds a problem for each key of a section of the entry that no config has. Returns true if there is one.
bool find_unknown_keys(const Suite& suite, std::size_t index, const std::vector<Candidate>& candidates,
                       std::vector<ConfigProblem>& problems) {
  const EntryConfig& entry = suite.config.cases[index];
  std::vector<std::pair<std::string, std::string>> keys;  // section and key as the suite has them
  for (const auto& [axis, values] : entry.matrix) keys.emplace_back("matrix", axis);
  for (const auto& [key, setting] : entry.set) keys.emplace_back("set", key);
  bool any = false;
  for (const auto& [section, key] : keys) {
    const std::string config_key = section == "matrix" ? key_of_axis(key) : key;
    if (config_key.empty() || candidates.empty()) continue;
    const bool known = std::ranges::any_of(
        candidates, [&](const Candidate& candidate) { return unknown_key(candidate, config_key) == nullptr; });
    if (known) continue;
    const ConfigProblem& unknown = *unknown_key(candidates.front(), config_key);
    const bool is_within = unknown.key.starts_with(config_key + ".");  // set: {expect: {loss: 1}}
    auto problem = suite.problem_at(index, section, key,
                                    "no config of this entry has " + (is_within ? "a key " + unknown.key : "this key"));
    problem.suggestion = unknown.suggestion;
    problems.push_back(problem);
    any = true;
  }
  return any;
}

void check_refused(const Suite& suite, std::size_t index, const std::vector<Candidate>& candidates,
                   std::vector<ConfigProblem>& problems) {
  const bool skips = suite.config.cases[index].refused == "skip";
  const auto accepted = [](const Candidate& candidate) { return candidate.problems.empty(); };
  if (candidates.empty()) {
    problems.push_back(suite.problem_at(index, "", "exclude", "no combination is left"));
  } else if (skips && std::ranges::none_of(candidates, accepted)) {
    problems.push_back(suite.problem_at(
        index, "", "configs", "every combination is refused; the first one: " + candidates.front().planned.refused));
  }
  if (skips) return;
  for (const auto& candidate : candidates) {
    if (accepted(candidate)) continue;
    problems.push_back(
        suite.problem_at(index, "", "configs", candidate.planned.name + " is refused: " + candidate.planned.refused));
  }
}

void check_names(const Suite& suite, const std::vector<PlannedCase>& cases, std::vector<ConfigProblem>& problems) {
  std::set<std::string> names;
  for (const auto& planned : cases) {
    if (names.insert(planned.name).second) continue;
    problems.push_back({.origin = suite.path,
                        .key = "cases",
                        .message = "two cases are called " + planned.name + "; give one of their entries a label"});
  }
}

}  // namespace

std::vector<PlannedCase> plan_cases(const Suite& suite, const std::vector<std::string>& overrides) {
  std::vector<PlannedCase> cases;
  std::vector<ConfigProblem> problems;
  for (std::size_t i = 0; i < suite.config.cases.size(); ++i) {
    auto candidates = candidates_of(suite, i, overrides);
    if (!find_unknown_keys(suite, i, candidates, problems)) check_refused(suite, i, candidates, problems);
    for (auto& candidate : candidates) cases.push_back(std::move(candidate.planned));
  }
  check_names(suite, cases, problems);
  if (!problems.empty()) throw ConfigError(std::move(problems));
  return cases;
}

std::vector<std::string> without_placement(const std::vector<std::string>& overrides) {
  static const std::set<std::string> kPlacement{"backend", "checkpoint", "expect",     "framework", "launch",
                                                "mesh",    "name",       "pipeline",   "plan",      "replica_check",
                                                "roles",   "strategy",   "determinism"};
  std::vector<std::string> kept;
  for (const auto& assignment : overrides) {
    if (!kPlacement.contains(assignment.substr(0, assignment.find_first_of(".=")))) kept.push_back(assignment);
  }
  return kept;
}

}  // namespace phalanx::regress
