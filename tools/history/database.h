// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <SQLiteCpp/Database.h>

#include <cstdint>
#include <optional>
#include <string>

#include "tools/history/records.h"
#include "tools/history/writer_lock.h"

namespace phalanx::history {

enum class OpenMode {
  kCreate,    // reads and writes; creates the file, or brings its schema to the newest version
  kReadOnly,  // the file must exist, and is never changed; another process may write to it at the same time
};

/// The database of nightly runs, results.sqlite: an SQLite file in WAL mode. Each function that writes is a
/// transaction, which a killed process has either completed or not begun. Calls must come from one thread at a time.
class Database {
 public:
  /// Throws ConfigError if the file cannot be opened, is not a database of nightly runs or has a newer schema, and with
  /// kCreate also if another process writes to it.
  explicit Database(const std::string& path, OpenMode mode);

  const std::string& path() const { return path_; }

  /// Returns the folder to which the paths in the database are relative.
  std::string folder() const;

  /// Returns the connection, for queries. Its errors are SQLite::Exceptions.
  SQLite::Database& connection() { return connection_; }

  // The functions below return the number of the new record. They throw DataError if the database cannot be written,
  // for example because the disk is full, or if it already has such a record.

  std::int64_t begin_session(const Session& session);

  /// Records the current time as the end of a session.
  void finish_session(std::int64_t id);

  std::int64_t add_case(std::int64_t session, const Case& one);
  void set_state(std::int64_t case_id, CaseState state, const std::string& reason);
  std::int64_t begin_run(std::int64_t case_id, const Run& run);
  void finish_run(std::int64_t run_id, const RunResult& result);

 private:
  std::int64_t environment_id(const Environment& environment);

  std::string path_;
  std::optional<WriterLock> lock_;  // taken before the file is opened
  SQLite::Database connection_;
};

}  // namespace phalanx::history
