// SPDX-License-Identifier: Apache-2.0
#include "framework/base/error.h"

#include <utility>

namespace phalanx {
namespace {

std::string describe(const ConfigProblem& problem) {
  std::string text = problem.origin;
  if (problem.line > 0) text += ":" + std::to_string(problem.line) + ":" + std::to_string(problem.column);
  if (!text.empty()) text += ": ";
  if (!problem.key.empty()) text += problem.key + ": ";
  text += problem.message;
  if (!problem.suggestion.empty()) text += " (did you mean \"" + problem.suggestion + "\"?)";
  return text;
}

std::string describe(const std::vector<ConfigProblem>& problems) {
  std::string text;
  for (const auto& problem : problems) text += (text.empty() ? "" : "\n") + describe(problem);
  return text;
}

}  // namespace

ConfigError::ConfigError(std::vector<ConfigProblem> problems)
    : Error(describe(problems)), problems_(std::move(problems)) {}

ConfigError::ConfigError(const std::string& message) : ConfigError({ConfigProblem{.message = message}}) {}

}  // namespace phalanx
