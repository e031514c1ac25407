// SPDX-License-Identifier: Apache-2.0
#include "engine/strategies/servers/server_optimizer.h"

#include <algorithm>
#include <sstream>
#include <stdexcept>

#include "framework/base/config/config.h"
#include "framework/base/text.h"

namespace phalanx {

double ServerOptimizer::learning_rate() const { return optimizer_.make({})->learning_rate(); }

std::string ServerOptimizer::rule(double staleness_power, std::int64_t clients) const {
  std::string text = format_text("\n  name: optimizer\n  staleness_power: %.17g\n  clients: ", staleness_power) +
                     std::to_string(clients) + "\n";
  std::istringstream lines(config::dump_as("optimizer", optimizer_));
  for (std::string line; std::getline(lines, line);) text += "  " + line + "\n";
  return text;
}

std::vector<std::string> ServerOptimizer::names() const {
  auto all = optimizer_.names();
  std::erase_if(all,
                [](const std::string& name) { return Optimizers::Choice(name).make({})->cut() != Cut::kAnywhere; });
  all.emplace_back(kNone);
  std::ranges::sort(all);
  return all;
}

std::string ServerOptimizer::help(const std::string& name) const {
  return name == kNone ? "ranks update their replicas themselves" : optimizer_.help(name);
}

void ServerOptimizer::select(const std::string& name) {
  const auto known = names();
  if (std::ranges::find(known, name) == known.end()) throw std::out_of_range("unknown optimizer of servers: " + name);
  optimizer_ = name == kNone ? Optimizers::Choice() : Optimizers::Choice(name);
  name_ = name;
}

void ServerOptimizer::visit_selected(config::Visitor& visitor) { optimizer_.visit_selected(visitor); }

void ServerOptimizer::visit_defaults(const std::string& name, config::Visitor& visitor) const {
  if (name != kNone) optimizer_.visit_defaults(name, visitor);
}

}  // namespace phalanx
