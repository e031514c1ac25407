// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include "tools/regress/site/json_file.h"
#include "tools/regress/site/nights.h"
#include "tools/regress/site/run_files.h"

namespace phalanx::site {

/// Returns the data of a night's page: its cases with their runs, and for each run that did not succeed its results and
/// expectations, the end of its log, and its reports of stalls.
Json night_data(SQLite::Database& database, const History& history, const Night& night, const RunFiles& files);

/// Returns the end of the logs of a run, and the stalls that they report: {"logs": [{name, tail, whole}], "stalls":
/// []}.
Json log_data(const RunFiles& files, const std::string& folder);

/// Returns the expectations of a run: [{key, wanted, got, met}].
Json expectation_data(SQLite::Database& database, std::int64_t run);

}  // namespace phalanx::site
