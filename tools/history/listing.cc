// SPDX-License-Identifier: Apache-2.0
#include "tools/history/listing.h"

#include <ctime>
#include <nlohmann/json.hpp>

#include "framework/base/error.h"
#include "framework/base/text.h"
#include "tools/report/comparison.h"

namespace phalanx::history {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kCommitDigits = 12;

std::string to_cell(const std::string& key, const Json& value) {
  if (value.is_null()) return "";
  if (value.is_number_float()) return format_text("%.6g", value.get<double>());
  if (!value.is_string()) return value.dump();
  const auto text = value.get<std::string>();
  return key == "commit" || key == "before" || key == "after" ? text.substr(0, kCommitDigits) : text;
}

std::string to_table(const Json& records) {
  Rows rows(1);
  for (const auto& [key, value] : records.front().items()) rows.front().push_back(key);
  for (const auto& record : records) {
    rows.emplace_back();
    for (const auto& [key, value] : record.items()) rows.back().push_back(to_cell(key, value));
  }
  return phalanx::to_text("", rows);
}

// Quotes a field if it needs it.
std::string to_field(const Json& value) {
  if (value.is_null()) return "";
  const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char letter : text) quoted += letter == '"' ? "\"\"" : std::string{letter};
  return quoted + "\"";
}

std::string to_csv(const Json& records) {
  std::vector<std::string> fields;
  for (const auto& [key, value] : records.front().items()) fields.push_back(to_field(key));
  std::string text = join(fields, ",") + "\n";
  for (const auto& record : records) {
    fields.clear();
    for (const auto& value : record) fields.push_back(to_field(value));
    text += join(fields, ",") + "\n";
  }
  return text;
}

Json or_null(const auto& optional) { return optional ? Json(*optional) : Json(nullptr); }

}  // namespace

Format parse_format(const std::string& text) {
  if (text == "table") return Format::kTable;
  if (text == "csv") return Format::kCsv;
  if (text == "json") return Format::kJson;
  throw ConfigError("--format=" + text + ": expected table, csv or json");
}

std::string to_listing(const Json& records, Format format, const std::string& none) {
  if (format == Format::kJson) return records.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  if (records.empty()) return format == Format::kTable ? none + "\n" : "";
  return format == Format::kTable ? to_table(records) : to_csv(records);
}

Json to_records(const std::vector<StoredRun>& runs, const std::vector<MetricName>& metrics) {
  Json records = Json::array();
  for (const auto& run : runs) {
    Json record{{"night", to_utc(run.session.session.started_at)},
                {"commit", run.session.session.git_commit},
                {"suite", run.session.session.suite},
                {"case", run.record.name},
                {"ranks", run.record.ranks},
                {"hosts", run.record.hosts},
                {"role", run.role},
                {"attempt", run.attempt},
                {"state", to_text(run.record.state)},
                {"exit_status", or_null(run.exit_status)},
                {"seconds", or_null(run.seconds)}};
    for (std::size_t i = 0; i < metrics.size(); ++i) record[to_text(metrics[i])] = or_null(run.metrics[i]);
    record["folder"] = run.folder;
    records.push_back(std::move(record));
  }
  return records;
}

Json to_records(const std::vector<FoundChange>& changes) {
  Json records = Json::array();
  for (const auto& [series, point] : changes) {
    records.push_back({{"case", series.case_name},
                       {"metric", to_text(series.metric)},
                       {"change_percent", 100 * point.relative()},
                       {"before", point.before},
                       {"after", point.after},
                       {"night", to_utc(series.nights[point.night].started_at)},
                       {"median_before", point.median_before},
                       {"median_after", point.median_after},
                       {"probability", point.probability},
                       {"hardware", series.hardware}});
  }
  return records;
}

std::string to_utc(std::int64_t seconds) {
  const auto time = static_cast<std::time_t>(seconds);
  std::tm utc{};
  ::gmtime_r(&time, &utc);
  return format_text("%04d-%02d-%02dT%02d:%02d:%02dZ", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday, utc.tm_hour,
                     utc.tm_min, utc.tm_sec);
}

}  // namespace phalanx::history
