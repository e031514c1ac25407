// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <cstdint>
#include <map>
#include <string>

#include "tools/regress/site/json_file.h"
#include "tools/regress/site/nights.h"
#include "tools/regress/site/run_files.h"

namespace phalanx::site {

/// The data of a run's page.
struct RunData {
  Json run;                                     // with "config": the name of the config below, or an empty string
  std::string config_name;                      // made of its contents, so that runs with the same config share one
  std::map<std::string, std::string> config{};  // values by key path: {"optimizer.lr": "0.02"}
};

/// Returns the data of a finished run: what the database has, and from its folder the curves, the time of a step, the
/// config and the end of the logs. If the folder is missing or malformed, "problem" says so.
RunData run_data(SQLite::Database& database, const History& history, std::int64_t run, const RunFiles& files);

}  // namespace phalanx::site
