// SPDX-License-Identifier: Apache-2.0
#include "tools/chaos/row.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "framework/base/text.h"

namespace phalanx::chaos {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kGood = "ok";

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

std::string verdict(const Row& row) { return row.good() ? kGood : join(row.problems, "; "); }

Json to_object(const Row& row) {
  return {{"run", row.trial.number},
          {"fault", row.trial.fault->name},
          {"rank", row.trial.rank},
          {"step", row.trial.step},
          {"event", std::string(to_string(row.trial.event))},
          {"status", row.status},
          {"detected_seconds", or_null(row.detected_seconds)},
          {"returned_seconds", or_null(row.returned_seconds)},
          {"recovered", !row.recovered.empty()},
          {"how", row.recovered},
          {"lost_steps", row.lost_steps},
          {"lost_samples", or_null(row.lost_samples)},
          {"orphans", row.orphans},
          {"leaked", row.leaked},
          {"seconds", row.seconds},
          {"verdict", verdict(row)}};
}

// The runs with one fault.
struct Group {
  int runs = 0, bad = 0;
  std::optional<double> slowest{};         // detected_seconds
  std::optional<double> slowest_return{};  // returned_seconds
  std::int64_t most_lost = 0;              // steps

  void add(const Row& row) {
    ++runs;
    bad += row.good() ? 0 : 1;
    if (row.detected_seconds) slowest = std::max(slowest.value_or(0), *row.detected_seconds);
    if (row.returned_seconds) slowest_return = std::max(slowest_return.value_or(0), *row.returned_seconds);
    most_lost = std::max(most_lost, row.lost_steps);
  }
};

}  // namespace

std::string to_json(const Findings& findings) {
  Json rows = Json::array(), skipped = Json::array();
  for (const auto& row : findings.rows) rows.push_back(to_object(row));
  for (const auto& [fault, why] : findings.skipped) skipped.push_back({{"fault", fault}, {"why", why}});
  const Json all{{"config", findings.config},   {"seed", findings.seed}, {"steps", findings.steps},
                 {"bitwise", findings.bitwise}, {"skipped", skipped},    {"rows", rows}};
  return all.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string to_line(const Row& row, int runs) {
  std::string line = std::to_string(row.trial.number) + "/" + std::to_string(runs) + "  " + row.trial.fault->name;
  if (row.trial.fault->caused_by != CausedBy::kBefore) {
    line += "  rank " + std::to_string(row.trial.rank) + ", step " + std::to_string(row.trial.step);
  }
  if (row.detected_seconds) line += format_text(", detected after %.2f s", *row.detected_seconds);
  if (!row.recovered.empty()) line += ", " + row.recovered;
  if (row.returned_seconds) line += format_text(" after %.2f s", *row.returned_seconds);
  if (row.lost_steps > 0) line += ", steps repeated: " + std::to_string(row.lost_steps);
  return line + ": " + verdict(row);
}

std::string to_table(const Findings& findings) {
  std::map<std::string, Group> groups;
  for (const auto& row : findings.rows) groups[row.trial.fault->name].add(row);
  const auto seconds = [](const std::optional<double>& most) { return most ? format_text("<= %.2f s", *most) : "-"; };
  std::string text = "fault                   runs   bad   detected after   replaced after   steps repeated\n";
  for (const auto& [name, group] : groups) {
    text += format_text("%-22s %5d %5d %16s %16s %16lld\n", name.c_str(), group.runs, group.bad,
                        seconds(group.slowest).c_str(), seconds(group.slowest_return).c_str(),
                        static_cast<long long>(group.most_lost));
  }
  for (const auto& [fault, why] : findings.skipped) text += "skipped " + fault + ": " + why + "\n";
  return text;
}

}  // namespace phalanx::chaos
