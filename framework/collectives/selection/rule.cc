// SPDX-License-Identifier: Apache-2.0
#include "framework/collectives/selection/rule.h"

#include <algorithm>
#include <optional>

#include "framework/base/text.h"
#include "framework/comm/device_kind.h"

namespace phalanx {
namespace {

ConfigProblem problem(const char* key, const std::string& message, const std::string& suggestion = {}) {
  return {.key = key, .message = message, .suggestion = suggestion};
}

std::vector<std::string> algorithms_of(Op op) {
  std::vector<std::string> names{kNative};
  for (const auto* algorithm : Algorithms::global().of(op)) names.push_back(algorithm->name);
  return names;
}

// Returns the operations that have an algorithm of this name, to suggest them if the name is used with another
// operation.
std::vector<std::string> owners_of(const std::string& algorithm) {
  std::vector<std::string> owners;
  for (const Op op : selectable_ops()) {
    const auto names = algorithms_of(op);
    if (std::ranges::find(names, algorithm) != names.end()) owners.emplace_back(to_string(op));
  }
  return owners;
}

void read_op(const SelectionRule& rule, ParsedRule& parsed, std::vector<ConfigProblem>& problems) {
  parsed.op = selectable_op(rule.op);
  if (parsed.op != Op::kNone) return;
  const auto known = selectable_op_names();
  problems.push_back(rule.op.empty() ? problem("op", "missing; known: " + join(known, ", "))
                                     : problem("op",
                                               "there is no operation \"" + rule.op +
                                                   "\" to choose an algorithm for; known: " + join(known, ", "),
                                               nearest(rule.op, known)));
}

void read_size(const SelectionRule& rule, ParsedRule& parsed, std::vector<ConfigProblem>& problems) {
  if (rule.up_to.empty()) return;
  try {
    parsed.up_to = parse_bytes(rule.up_to);
    if (parsed.up_to < 0) problems.push_back(problem("up_to", "must be at least 0, got " + rule.up_to));
  } catch (const ConfigError& error) {
    problems.push_back(problem("up_to", error.what()));
  }
}

void read_algorithm(const SelectionRule& rule, ParsedRule& parsed, std::vector<ConfigProblem>& problems) {
  if (rule.algorithm == kNative || parsed.op == Op::kNone) return;
  for (const auto* algorithm : Algorithms::global().of(parsed.op)) {
    if (algorithm->name == rule.algorithm) parsed.algorithm = algorithm;
  }
  if (parsed.algorithm != nullptr) return;
  const auto known = algorithms_of(parsed.op);
  const auto owners = owners_of(rule.algorithm);
  problems.push_back(problem("algorithm",
                             "\"" + rule.algorithm + "\" is not an algorithm of " + rule.op +
                                 (owners.empty() ? "" : ", only of " + join(owners, ", ")) +
                                 "; known: " + join(known, ", "),
                             nearest(rule.algorithm, known)));
}

void read_scope(const SelectionRule& rule, ParsedRule& parsed, std::vector<ConfigProblem>& problems) {
  if (rule.scope == kAny) return;
  for (const Scope scope : {Scope::kHost, Scope::kHosts}) {
    if (rule.scope == to_string(scope)) parsed.scope = scope;
  }
  if (!parsed.scope) problems.push_back(problem("scope", "must be any, host or hosts, got \"" + rule.scope + "\""));
}

void read_device(const SelectionRule& rule, ParsedRule& parsed, std::vector<ConfigProblem>& problems) {
  if (rule.device == kAny) return;
  if (rule.device == "cpu") {
    parsed.device = c10::kCPU;
    return;
  }
  const auto kinds = DeviceKinds::global().names();
  if (std::ranges::find(kinds, rule.device) != kinds.end()) {
    parsed.device = DeviceKinds::Choice(rule.device).make()->type();
    return;
  }
  problems.push_back(problem("device", "\"" + rule.device + "\" is not one of " + join(known_tensor_devices(), ", ")));
}

ParsedRule read(const SelectionRule& rule, std::vector<ConfigProblem>& problems) {
  ParsedRule parsed{.ranks = rule.ranks, .backend = rule.backend == kOwn ? "" : rule.backend};
  read_op(rule, parsed, problems);
  read_size(rule, parsed, problems);
  if (rule.ranks < 0) problems.push_back(problem("ranks", "must be at least 0, got " + std::to_string(rule.ranks)));
  read_scope(rule, parsed, problems);
  read_device(rule, parsed, problems);
  if (rule.backend.empty()) problems.push_back(problem("backend", "is empty; own means the group's own backend"));
  read_algorithm(rule, parsed, problems);
  return parsed;
}

std::string of_place(const std::string& scope) {
  if (scope == kAny) return "";
  return scope == to_string(Scope::kHost) ? " of one host" : " of several hosts";
}

}  // namespace

const char* to_string(Scope scope) { return scope == Scope::kHost ? "host" : "hosts"; }

std::vector<std::string> known_algorithms() {
  std::vector<std::string> names;
  for (const Op op : selectable_ops()) {
    for (const auto* algorithm : Algorithms::global().of(op)) names.push_back(algorithm->name);
  }
  std::ranges::sort(names);
  const auto repeated = std::ranges::unique(names);
  names.erase(repeated.begin(), repeated.end());
  names.insert(names.begin(), kNative);
  return names;
}

std::vector<std::string> known_alternatives() {
  auto names = Backends::global().names();
  names.insert(names.begin(), kOwn);
  return names;
}

std::vector<std::string> known_tensor_devices() {
  auto names = DeviceKinds::global().names();
  names.insert(names.begin(), {kAny, "cpu"});
  return names;
}

// Algorithms move tensors of the CPU only.
bool ParsedRule::hides(const ParsedRule& later) const {
  const bool matches_all = op == later.op && (ranks == 0 || ranks == later.ranks) && up_to >= later.up_to &&
                           (!scope || scope == later.scope) && (!device || device == later.device);
  const bool later_on_cpu = later.device.value_or(c10::kCPU) == c10::kCPU;
  const bool always_can = algorithm == nullptr || (!algorithm->suits && later_on_cpu);
  const bool same_way = algorithm == later.algorithm && backend == later.backend;
  return matches_all && (always_can || same_way);
}

ParsedRule parse(const SelectionRule& rule) {
  std::vector<ConfigProblem> problems;
  ParsedRule parsed = read(rule, problems);
  if (!problems.empty()) throw ConfigError(std::move(problems));
  return parsed;
}

std::vector<ConfigProblem> problems_of(const std::vector<SelectionRule>& rules, const std::string& origin,
                                       const std::string& key) {
  std::vector<ConfigProblem> all;
  std::vector<std::optional<ParsedRule>> parsed;  // nothing for a rule with problems, which hides no other rule
  for (std::size_t i = 0; i < rules.size(); ++i) {
    std::vector<ConfigProblem> problems;
    const ParsedRule rule = read(rules[i], problems);
    for (std::size_t earlier = 0; earlier < i && problems.empty(); ++earlier) {
      if (!parsed[earlier] || !parsed[earlier]->hides(rule)) continue;
      problems.push_back({.message = "is never reached: [" + std::to_string(earlier) + "], " +
                                     describe(rules[earlier]) + ", comes first and covers it entirely"});
    }
    parsed.push_back(problems.empty() ? std::optional(rule) : std::nullopt);
    for (auto& problem : problems) {
      problem.origin = origin;
      problem.key = key + "[" + std::to_string(i) + "]" + (problem.key.empty() ? "" : "." + problem.key);
      all.push_back(std::move(problem));
    }
  }
  return all;
}

std::string describe(const SelectionRule& rule) {
  return rule.op + (rule.up_to.empty() ? "" : " up to " + rule.up_to) +
         (rule.ranks == 0 ? "" : " on " + std::to_string(rule.ranks) + " ranks") + of_place(rule.scope) +
         (rule.device == kAny ? "" : " for " + rule.device) + " -> " + rule.algorithm +
         (rule.backend == kOwn ? "" : " on " + rule.backend);
}

}  // namespace phalanx
