// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "tools/regress/suite/suite_config.h"

namespace phalanx::regress {

/// The cases that are known to fail now and then. Their failures are recorded, but do not fail a session.
class Quarantine {
 public:
  Quarantine() = default;
  explicit Quarantine(std::vector<FlakyConfig> entries) : entries_(std::move(entries)) {}

  /// Returns the entry for a case, or nullptr.
  const FlakyConfig* find(const std::string& case_name) const;

 private:
  std::vector<FlakyConfig> entries_;
};

/// Reads quarantine.yaml. A file that does not exist has no entries. Throws ConfigError with all problems, with file,
/// line and key: entries without cases or reason, malformed dates, and entries that ended before `today`.
Quarantine load_quarantine(const std::string& path, std::chrono::year_month_day today);

/// Returns the current date at this place.
std::chrono::year_month_day today();

}  // namespace phalanx::regress
