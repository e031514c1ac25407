// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

namespace SQLite {
class Database;
}  // namespace SQLite

// The tables of the database of nightly runs, in versions.
namespace phalanx::history {

/// Returns the SQL that makes each version of the schema from the version before it; the first one makes version 1 in
/// an empty database. A released step never changes: a change of the schema is a further step.
std::span<const char* const> schema_steps();

/// Brings the database to the newest version in one transaction: a process that is killed leaves the old version. Does
/// nothing if it has this version. Throws ConfigError, which names `path`, if a newer program has written the database,
/// or if it is not one of nightly runs.
void migrate(SQLite::Database& connection, const std::string& path,
             std::span<const char* const> steps = schema_steps());

/// Throws ConfigError unless the database has the newest version: for readers, which cannot change it.
void require_newest_schema(SQLite::Database& connection, const std::string& path);

}  // namespace phalanx::history
