// SPDX-License-Identifier: Apache-2.0
#include "tools/regress/site/write_site.h"

#include <SQLiteCpp/SQLiteCpp.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <utility>
#include <vector>

#include "engine/html/style.h"
#include "framework/base/version.h"
#include "tools/regress/site/assets.h"
#include "tools/regress/site/json_file.h"
#include "tools/regress/site/night_data.h"
#include "tools/regress/site/nights.h"
#include "tools/regress/site/run_data.h"
#include "tools/regress/site/run_files.h"
#include "tools/regress/site/trends.h"

namespace phalanx {
namespace {

using site::Json;

// Returns a text that differs between databases: a folder may be deleted and used for another one, which numbers its
// rows in the same way.
std::string identity_of(SQLite::Database& database) {
  SQLite::Statement row(database, "SELECT started_at, suite, git_commit FROM sessions ORDER BY id LIMIT 1");
  if (!row.executeStep()) return "empty";
  return row.getColumn(0).getString() + " " + row.getColumn(1).getString() + " " + row.getColumn(2).getString();
}

Json overview_of(const site::SuiteHistory& suite, const std::vector<site::Change>& changes) {
  Json nights = Json::array(), cases = Json::array(), changed = Json::array();
  for (const auto& night : suite.nights) {
    nights.push_back({night.id, night.started_at, night.finished_at, night.commit, night.dirty ? 1 : 0});
  }
  for (const auto& one : suite.cases) cases.push_back({one.id, one.name, one.config, one.states});
  for (const auto& change : changes) changed.push_back(site::change_data(change));
  return {{"name", suite.name}, {"nights", nights}, {"cases", cases}, {"changes", changed}};
}

// Writes the pages of the cases and returns what the first page shows of them.
Json write_cases(const site::History& history, const std::map<std::int64_t, site::Trends>& trends,
                 const site::DataFolder& data) {
  const site::Trends none;
  Json suites = Json::array();
  for (const auto& suite : history.suites) {
    std::vector<site::Change> all;
    for (const auto& one : suite.cases) {
      const auto found = trends.find(one.id);
      const site::Trends& measured = found == trends.end() ? none : found->second;
      const auto changes = site::find_changes(suite, one, measured);
      data.write("cases/" + std::to_string(one.id), site::case_data(suite, one, measured, changes));
      all.insert(all.end(), changes.begin(), changes.end());
    }
    suites.push_back(overview_of(suite, all));
  }
  return suites;
}

// A night that has ended does not change any more.
void write_nights(SQLite::Database& database, const site::History& history, const site::RunFiles& files,
                  const site::DataFolder& data) {
  for (const auto& suite : history.suites) {
    for (const auto& night : suite.nights) {
      const std::string name = "nights/" + std::to_string(night.id);
      // Another shard may have been added to a night that was complete, but only while it is the last one.
      const bool is_last = &night == &suite.nights.back();
      if (night.finished_at > 0 && !is_last && data.has(name)) continue;
      data.write(name, site::night_data(database, history, night, files));
    }
  }
}

// A run has a page as soon as it has ended.
void write_runs(SQLite::Database& database, const site::History& history, const site::RunFiles& files,
                const site::DataFolder& data) {
  std::vector<std::int64_t> finished;
  SQLite::Statement rows(database,
                         "SELECT runs.id FROM runs JOIN cases ON cases.id = runs.case_id "
                         "WHERE runs.exit_status IS NOT NULL AND cases.state NOT IN ('planned', 'running')");
  while (rows.executeStep()) finished.push_back(rows.getColumn(0).getInt64());
  for (const auto id : finished) {
    const std::string name = "runs/" + std::to_string(id);
    if (data.has(name)) continue;
    const site::RunData run = site::run_data(database, history, id, files);
    if (!run.config_name.empty()) data.write("configs/" + run.config_name, run.config);
    data.write(name, run.run);
  }
}

}  // namespace

void write_site(history::Database& opened, const std::string& folder) {
  SQLite::Database& database = opened.connection();
  // All pages show the same state, whatever is written meanwhile.
  const SQLite::Transaction unchanging(database);
  const site::RunFiles files{.database_folder = std::filesystem::absolute(opened.folder()).lexically_normal(),
                             .site = std::filesystem::absolute(folder).lexically_normal()};
  const site::DataFolder data(folder + "/data", identity_of(database));
  const site::History history = site::read_history(database);
  write_runs(database, history, files, data);
  write_nights(database, history, files, data);
  Json suites = write_cases(history, site::read_trends(database, history), data);
  const auto now = std::chrono::system_clock::now().time_since_epoch() / std::chrono::seconds(1);
  // Last, because it refers to the other files.
  data.write("overview", {{"written", now}, {"version", kVersion}, {"suites", std::move(suites)}});
  site::write_if_changed(folder + "/site.css", std::string(kStyle) + site::kSiteStyle);
  site::write_if_changed(folder + "/site.js", site::kSiteScript);
  site::write_if_changed(folder + "/index.html", site::kSitePage);
}

}  // namespace phalanx
