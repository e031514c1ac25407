// SPDX-License-Identifier: Apache-2.0
// JUnit XML, in the form that Jenkins and GitLab read: testsuites, testsuite, testcase with skipped, error or failure,
// and system-out and system-err.
#include <ctime>

#include "framework/base/escape_html.h"
#include "framework/base/printable.h"
#include "framework/base/text.h"
#include "tools/regress/results/session_report.h"
#include "tools/regress/site/log_excerpt.h"

namespace phalanx::regress {
namespace {

using history::CaseState;

// Returns text for an element or an attribute. printable() has removed what XML does not allow.
std::string xml_text(const std::string& text) { return escape_html(printable(text)); }

std::string xml_attribute(const std::string& name, const std::string& value) {
  std::string text = xml_text(value);
  for (auto end = text.find('\n'); end != text.npos; end = text.find('\n', end)) text.replace(end, 1, "&#10;");
  return " " + name + "=\"" + text + "\"";
}

std::string seconds_text(double seconds) { return format_text("%.3f", seconds); }

std::string utc_text(std::int64_t seconds) {
  const std::time_t time = seconds;
  std::tm utc{};
  ::gmtime_r(&time, &utc);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &utc);
  return text;
}

std::string outcome_of(const CaseReport& one) {
  const std::string text = xml_text(one.reason);
  switch (one.state) {
    case CaseState::kPassed:
      return {};
    case CaseState::kSkipped:
      return "      <skipped" + xml_attribute("message", one.reason) + "/>\n";
    case CaseState::kQuarantined:
      return "      <skipped" + xml_attribute("message", "quarantined: " + one.reason) + "/>\n";
    case CaseState::kFailed:
      return "      <failure" + xml_attribute("message", one.reason) + xml_attribute("type", "failed") + ">" + text +
             "</failure>\n";
    default:
      return "      <error" + xml_attribute("message", one.reason) +
             xml_attribute("type", history::to_text(one.state)) + ">" + text + "</error>\n";
  }
}

std::string logs_of(const CaseReport& one, const std::string& folder) {
  if (one.folder.empty() || one.state == CaseState::kPassed || one.state == CaseState::kSkipped) return {};
  const std::string run = folder + "/" + one.folder;
  const auto errors = site::read_excerpt(run + "/stderr.log");
  std::string text = errors.tail;
  for (const auto& stall : errors.stalls) {
    if (errors.tail.find(stall) == errors.tail.npos) text = stall + "\n" + text;
  }
  return "      <system-out>" + xml_text(site::read_excerpt(run + "/stdout.log").tail) + "</system-out>\n" +
         "      <system-err>" + xml_text(text) + "</system-err>\n";
}

// Returns the attributes that testsuites and testsuite share.
std::string totals(const SessionReport& report) {
  double seconds = 0;
  for (const auto& one : report.cases) seconds += one.seconds;
  const int failures = report.count(CaseState::kFailed);
  const int skipped = report.count(CaseState::kSkipped) + report.count(CaseState::kQuarantined);
  const int errors = static_cast<int>(report.cases.size()) - failures - skipped - report.count(CaseState::kPassed);
  return xml_attribute("name", report.suite) + xml_attribute("tests", std::to_string(report.cases.size())) +
         xml_attribute("failures", std::to_string(failures)) + xml_attribute("errors", std::to_string(errors)) +
         xml_attribute("skipped", std::to_string(skipped)) + xml_attribute("time", seconds_text(seconds));
}

}  // namespace

std::string to_junit(const SessionReport& report, const std::string& folder, const std::string& host) {
  std::string text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  // The element testsuites has no attribute `skipped` in the common schema.
  std::string of_all = totals(report);
  of_all.erase(of_all.find(" skipped="), of_all.find(" time=") - of_all.find(" skipped="));
  text += "<testsuites" + of_all + ">\n";
  text += "  <testsuite" + totals(report) + xml_attribute("timestamp", utc_text(report.started_at)) +
          xml_attribute("hostname", host) + ">\n    <properties>\n";
  for (const auto& [name, value] :
       {std::pair{"commit", report.commit + (report.dirty ? " and changes" : "")}, std::pair{"shard", report.shard}}) {
    text += "      <property" + xml_attribute("name", name) + xml_attribute("value", value) + "/>\n";
  }
  text += "    </properties>\n";
  for (const auto& one : report.cases) {
    text += "    <testcase" + xml_attribute("name", one.name) + xml_attribute("classname", report.suite) +
            xml_attribute("time", seconds_text(one.seconds)) + ">\n" + outcome_of(one) + logs_of(one, folder) +
            "    </testcase>\n";
  }
  return text + "  </testsuite>\n</testsuites>\n";
}

}  // namespace phalanx::regress
