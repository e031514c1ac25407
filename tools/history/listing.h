// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/history/queries.h"

namespace phalanx::history {

/// The forms in which `history` prints its answers.
enum class Format { kTable, kCsv, kJson };

/// Parses "table", "csv" or "json". Throws ConfigError for any other text.
Format parse_format(const std::string& text);

/// Returns a text with one line for each of `records`, which are flat objects with the same keys, after a line with the
/// keys: columns for people (numbers with six digits, commits abbreviated), CSV (RFC 4180, with line feeds), or a JSON
/// array. Returns `none` as a line instead of a table without rows.
std::string to_listing(const nlohmann::ordered_json& records, Format format, const std::string& none);

/// Returns records of runs, with a key for each of `metrics`.
nlohmann::ordered_json to_records(const std::vector<StoredRun>& runs, const std::vector<MetricName>& metrics);

/// A change point, and the series that has it.
struct FoundChange {
  Series series;
  ChangePoint point;
};

nlohmann::ordered_json to_records(const std::vector<FoundChange>& changes);

/// Returns a time as text: "2026-03-01T02:00:00Z".
std::string to_utc(std::int64_t seconds);

}  // namespace phalanx::history
