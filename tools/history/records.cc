// SPDX-License-Identifier: Apache-2.0
#include "tools/history/records.h"

#include <array>

#include "framework/base/error.h"

namespace phalanx::history {
namespace {

constexpr std::array<std::pair<CaseState, const char*>, 7> kStates{{{CaseState::kPlanned, "planned"},
                                                                    {CaseState::kRunning, "running"},
                                                                    {CaseState::kPassed, "passed"},
                                                                    {CaseState::kFailed, "failed"},
                                                                    {CaseState::kError, "error"},
                                                                    {CaseState::kSkipped, "skipped"},
                                                                    {CaseState::kQuarantined, "quarantined"}}};
constexpr const char* kWholeRun = "run";

}  // namespace

std::string to_text(CaseState state) {
  for (const auto& [one, text] : kStates) {
    if (one == state) return text;
  }
  return {};
}

CaseState parse_case_state(const std::string& text) {
  for (const auto& [state, one] : kStates) {
    if (text == one) return state;
  }
  throw DataError("\"" + text + "\" is not the state of a case");
}

MetricName parse_metric(const std::string& text) {
  const auto point = text.find('.');
  if (point == std::string::npos) return {kWholeRun, text};
  return {text.substr(0, point), text.substr(point + 1)};
}

std::string to_text(const MetricName& metric) {
  return metric.split == kWholeRun ? metric.name : metric.split + "." + metric.name;
}

}  // namespace phalanx::history
