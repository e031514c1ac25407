// SPDX-License-Identifier: Apache-2.0
#include "models/trainable_parameters.h"

#include <regex>
#include <utility>

#include "framework/base/error.h"

namespace phalanx {
namespace {

NamedTensors chosen(const Model& model, bool trained) {
  NamedTensors parameters;
  for (auto& named : model.named_parameters()) {
    if (named.second.requires_grad() == trained) parameters.push_back(std::move(named));
  }
  return parameters;
}

// Returns the matching tensors, at least one.
NamedTensors matched(const NamedTensors& all, const std::string& expression, const std::string& key) {
  std::regex matches;
  try {
    matches.assign(expression, std::regex::ECMAScript | std::regex::optimize);
  } catch (const std::regex_error& error) {
    throw ConfigError(key + ": \"" + expression + "\" is not a regular expression: " + error.what());
  }
  NamedTensors found;
  for (const auto& named : all) {
    if (std::regex_search(named.first, matches)) found.push_back(named);
  }
  if (!found.empty()) return found;
  throw ConfigError(key + ": \"" + expression + "\" matches no parameter of the model; the first one is " +
                    (all.empty() ? "none" : all.front().first));
}

}  // namespace

void freeze(Model& model, const std::string& expression, const std::string& key) {
  const NamedTensors all = model.named_parameters(), found = matched(all, expression, key);
  if (found.size() == all.size()) {
    throw ConfigError(key + ": \"" + expression + "\" matches all parameters, and would leave none to train");
  }
  for (const auto& [name, parameter] : found) parameter.set_requires_grad(false);
}

void refuse_unmatched(const Model& model, const std::string& expression, const std::string& key) {
  matched(model.named_parameters(), expression, key);
}

NamedTensors trainable_parameters(const Model& model) { return chosen(model, true); }
NamedTensors frozen_parameters(const Model& model) { return chosen(model, false); }

}  // namespace phalanx
