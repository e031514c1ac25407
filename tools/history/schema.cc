// SPDX-License-Identifier: Apache-2.0
#include "tools/history/schema.h"

#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Transaction.h>

#include <array>

#include "framework/base/error.h"

namespace phalanx::history {
namespace {

constexpr const char* kVersion1 = R"(
CREATE TABLE sessions(
  id INTEGER PRIMARY KEY,
  suite TEXT NOT NULL,
  started_at INTEGER NOT NULL,
  finished_at INTEGER,
  git_commit TEXT NOT NULL,
  git_dirty INTEGER NOT NULL,
  shard TEXT NOT NULL DEFAULT '1/1');
CREATE INDEX sessions_by_suite ON sessions(suite, started_at);
CREATE INDEX sessions_by_time ON sessions(started_at);

CREATE TABLE cases(
  id INTEGER PRIMARY KEY,
  session_id INTEGER NOT NULL REFERENCES sessions,
  name TEXT NOT NULL,
  config TEXT NOT NULL,
  overrides TEXT NOT NULL,
  ranks INTEGER NOT NULL,
  hosts INTEGER NOT NULL,
  state TEXT NOT NULL,
  reason TEXT NOT NULL DEFAULT '',
  UNIQUE(session_id, name));
CREATE INDEX cases_by_name ON cases(name, session_id);

CREATE TABLE environments(
  id INTEGER PRIMARY KEY,
  hardware TEXT NOT NULL,
  cores INTEGER NOT NULL,
  hosts TEXT NOT NULL,
  versions TEXT NOT NULL,
  UNIQUE(hardware, cores, hosts, versions));

CREATE TABLE runs(
  id INTEGER PRIMARY KEY,
  case_id INTEGER NOT NULL REFERENCES cases,
  attempt INTEGER NOT NULL,
  role TEXT NOT NULL DEFAULT 'main',
  environment_id INTEGER REFERENCES environments,
  started_at INTEGER NOT NULL,
  seconds REAL,
  exit_status INTEGER,
  error TEXT NOT NULL DEFAULT '',
  folder TEXT NOT NULL,
  UNIQUE(case_id, attempt, role));
CREATE INDEX runs_by_folder ON runs(folder);

CREATE TABLE metrics(
  run_id INTEGER NOT NULL REFERENCES runs,
  split TEXT NOT NULL,
  epoch INTEGER NOT NULL,
  name TEXT NOT NULL,
  value REAL,
  PRIMARY KEY(run_id, split, epoch, name)) WITHOUT ROWID;
CREATE INDEX final_metrics ON metrics(run_id, split, name, value) WHERE epoch = -1;

CREATE TABLE expectations(
  run_id INTEGER NOT NULL REFERENCES runs,
  key TEXT NOT NULL,
  wanted TEXT NOT NULL,
  got TEXT NOT NULL,
  value REAL,
  met INTEGER NOT NULL,
  PRIMARY KEY(run_id, key)) WITHOUT ROWID;

CREATE TABLE artefacts(
  run_id INTEGER NOT NULL REFERENCES runs,
  name TEXT NOT NULL,
  path TEXT NOT NULL,
  PRIMARY KEY(run_id, name)) WITHOUT ROWID;
)";

constexpr std::array<const char*, 1> kSteps{kVersion1};

int version_of(SQLite::Database& connection) { return connection.execAndGet("PRAGMA user_version").getInt(); }

int tables_in(SQLite::Database& connection) {
  return connection.execAndGet("SELECT count(*) FROM sqlite_master WHERE type = 'table'").getInt();
}

[[noreturn]] void refuse(const std::string& path, const std::string& why) { throw ConfigError(path + ": " + why); }

// Returns the version of the database, 0 for an empty one.
int checked_version(SQLite::Database& connection, const std::string& path, std::size_t newest) {
  const int version = version_of(connection);
  const bool ours = version == 0 ? tables_in(connection) == 0 : connection.tableExists("runs");
  if (version < 0 || !ours) refuse(path, "is a database of another program, not of nightly runs");
  if (static_cast<std::size_t>(version) > newest) {
    refuse(path, "has schema version " + std::to_string(version) + ", but this program knows versions up to " +
                     std::to_string(newest) + "; use the newer program that wrote it, or another folder");
  }
  return version;
}

}  // namespace

std::span<const char* const> schema_steps() { return kSteps; }

void migrate(SQLite::Database& connection, const std::string& path, std::span<const char* const> steps) {
  SQLite::Transaction transaction(connection, SQLite::TransactionBehavior::IMMEDIATE);
  const auto version = static_cast<std::size_t>(checked_version(connection, path, steps.size()));
  for (const char* const step : steps.subspan(version)) connection.exec(step);
  if (version < steps.size()) connection.exec("PRAGMA user_version = " + std::to_string(steps.size()));
  transaction.commit();
}

void require_newest_schema(SQLite::Database& connection, const std::string& path) {
  const auto newest = schema_steps().size();
  const int version = checked_version(connection, path, newest);
  if (static_cast<std::size_t>(version) == newest) return;
  refuse(path, "has schema version " + std::to_string(version) + ", and this program reads version " +
                   std::to_string(newest) + "; the next session of regress in this folder converts it");
}

}  // namespace phalanx::history
