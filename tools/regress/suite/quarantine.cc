// SPDX-License-Identifier: Apache-2.0
#include "tools/regress/suite/quarantine.h"

#include <fnmatch.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <iterator>
#include <optional>

#include "framework/base/config/loading_visitor.h"
#include "framework/base/config/parse.h"
#include "framework/base/config/read_config.h"
#include "framework/base/error.h"

namespace phalanx::regress {
namespace {

std::optional<std::chrono::year_month_day> parse_date(const std::string& text) {
  int year = 0, length = 0;
  unsigned month = 0, day = 0;
  if (std::sscanf(text.c_str(), "%4d-%2u-%2u%n", &year, &month, &day, &length) != 3) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(month), std::chrono::day(day)};
  if (static_cast<std::size_t>(length) != text.size() || !date.ok()) return std::nullopt;
  return date;
}

// Returns the complaint about an entry and its key, or an empty message.
ConfigProblem check_flaky(const FlakyConfig& entry, std::chrono::year_month_day today) {
  if (entry.cases.empty()) return {.key = "cases", .message = "name the cases"};
  if (entry.reason.empty()) return {.key = "reason", .message = "say why " + entry.cases + " may fail"};
  const auto until = parse_date(entry.until);
  if (!until) return {.key = "until", .message = "expected a date such as 2027-01-31, got \"" + entry.until + "\""};
  if (*until >= today) return {};
  return {.key = "until",
          .message = "the quarantine of " + entry.cases + " ended on " + entry.until +
                     "; mend what it waits for and remove the entry, or choose a later day"};
}

}  // namespace

const FlakyConfig* Quarantine::find(const std::string& case_name) const {
  const auto found = std::ranges::find_if(
      entries_, [&](const auto& entry) { return ::fnmatch(entry.cases.c_str(), case_name.c_str(), 0) == 0; });
  return found == entries_.end() ? nullptr : &*found;
}

Quarantine load_quarantine(const std::string& path, std::chrono::year_month_day today) {
  std::error_code none;
  if (!std::filesystem::exists(path, none)) return {};
  std::vector<ConfigProblem> problems;
  const std::string text = config::read_config(path);
  config::Node tree = config::parse({text, path}, problems);
  tree.location.origin = path;
  QuarantineConfig config;
  if (problems.empty()) {
    config::LoadingVisitor loading(tree);
    config.visit(static_cast<config::Visitor&>(loading));
    std::ranges::move(loading.finish(), std::back_inserter(problems));
  }
  if (!problems.empty()) throw ConfigError(std::move(problems));
  for (std::size_t i = 0; i < config.quarantine.size(); ++i) {
    ConfigProblem problem = check_flaky(config.quarantine[i], today);
    if (problem.message.empty()) continue;
    const auto& item = config::find(tree, "quarantine")->value.items.at(i);
    const auto* written = config::find(item, problem.key);
    const auto& place = written ? written->location : item.location;
    problem.origin = path;
    problem.line = place.line;
    problem.column = place.column;
    problem.key = "quarantine[" + std::to_string(i) + "]." + problem.key;
    problems.push_back(problem);
  }
  if (!problems.empty()) throw ConfigError(std::move(problems));
  return Quarantine(std::move(config.quarantine));
}

std::chrono::year_month_day today() {
  const std::time_t now = std::time(nullptr);
  std::tm here{};
  ::localtime_r(&now, &here);
  return {std::chrono::year(here.tm_year + 1900), std::chrono::month(static_cast<unsigned>(here.tm_mon + 1)),
          std::chrono::day(static_cast<unsigned>(here.tm_mday))};
}

}  // namespace phalanx::regress
