// SPDX-License-Identifier: Apache-2.0
#include "tools/history/database.h"

#include <SQLiteCpp/Exception.h>
#include <SQLiteCpp/Statement.h>
#include <SQLiteCpp/Transaction.h>
#include <SQLiteCpp/VariadicBind.h>
#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "framework/base/error.h"
#include "tools/history/schema.h"

namespace phalanx::history {
namespace {

constexpr int kBusyMilliseconds = 10'000;  // for locks that another process has for a moment

std::string folder_of(const std::string& path) {
  const auto parent = std::filesystem::path(path).parent_path();
  return parent.empty() ? "." : parent.string();
}

// Returns a URI that makes SQLite read the file alone. In a folder that cannot be written to, it could not create the
// files through which processes share a database in WAL mode.
std::string immutable_uri(const std::string& path) {
  std::string uri = "file:";
  for (const char letter : path) {
    constexpr std::string_view kDigits = "0123456789ABCDEF";
    const auto byte = static_cast<unsigned char>(letter);
    const bool special = letter == '%' || letter == '?' || letter == '#';
    uri += special ? std::string{'%', kDigits[byte >> 4], kDigits[byte & 15]} : std::string{letter};
  }
  return uri + "?immutable=1";
}

SQLite::Database open_to_read(const std::string& path) {
  std::error_code none;
  if (!std::filesystem::exists(path, none)) {
    throw ConfigError(path + ": there is no such file; regress writes it into its --out folder");
  }
  const bool shared = std::filesystem::exists(path + "-wal", none) || ::access(folder_of(path).c_str(), W_OK) == 0;
  if (shared) return {path, SQLite::OPEN_READONLY, kBusyMilliseconds};
  return {immutable_uri(path), SQLite::OPEN_READONLY | SQLite::OPEN_URI};
}

SQLite::Database open(const std::string& path, OpenMode mode) {
  try {
    if (mode == OpenMode::kReadOnly) {
      SQLite::Database connection = open_to_read(path);
      require_newest_schema(connection, path);
      return connection;
    }
    SQLite::Database connection(path, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE, kBusyMilliseconds);
    migrate(connection, path);
    connection.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON");
    return connection;
  } catch (const SQLite::Exception& error) {
    throw ConfigError(path + ": cannot be used as a database of nightly runs: " + error.what());
  }
}

std::string json_text(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Executes an INSERT or UPDATE with these values.
template <class... Values>
void execute(SQLite::Database& connection, const char* sql, const Values&... values) {
  SQLite::Statement statement(connection, sql);
  SQLite::bind(statement, values...);
  statement.exec();
}

// Calls `work` in a transaction, and adds the path of the database to its errors.
template <class Work>
auto write(SQLite::Database& connection, const std::string& path, const Work& work) {
  try {
    SQLite::Transaction transaction(connection, SQLite::TransactionBehavior::IMMEDIATE);
    const auto result = work();
    transaction.commit();
    return result;
  } catch (const SQLite::Exception& error) {
    throw DataError(path + ": cannot be written: " + error.what());
  }
}

void add_metrics(SQLite::Database& connection, std::int64_t run, const std::vector<MetricValue>& metrics) {
  SQLite::Statement statement(connection,
                              "INSERT INTO metrics(run_id, split, epoch, name, value) VALUES(?, ?, ?, ?, ?)");
  for (const auto& metric : metrics) {
    statement.reset();
    SQLite::bind(statement, run, metric.split, metric.epoch, metric.name, metric.value);
    statement.exec();
  }
}

void add_expectations(SQLite::Database& connection, std::int64_t run, const std::vector<ExpectationResult>& results) {
  SQLite::Statement statement(
      connection, "INSERT INTO expectations(run_id, key, wanted, got, value, met) VALUES(?, ?, ?, ?, ?, ?)");
  for (const auto& result : results) {
    statement.reset();
    statement.bind(1, run);
    statement.bind(2, result.key);
    statement.bind(3, result.wanted);
    statement.bind(4, result.got);
    if (result.value) {
      statement.bind(5, *result.value);
    } else {
      statement.bind(5);
    }
    statement.bind(6, result.met ? 1 : 0);
    statement.exec();
  }
}

void add_artefacts(SQLite::Database& connection, std::int64_t run, const std::vector<Artefact>& artefacts) {
  for (const auto& artefact : artefacts) {
    execute(connection, "INSERT INTO artefacts(run_id, name, path) VALUES(?, ?, ?)", run, artefact.name, artefact.path);
  }
}

}  // namespace

Database::Database(const std::string& path, OpenMode mode)
    : path_(path),
      lock_(mode == OpenMode::kCreate ? std::optional<WriterLock>(path) : std::nullopt),
      connection_(open(path, mode)) {}

std::string Database::folder() const { return folder_of(path_); }

std::int64_t Database::begin_session(const Session& session) {
  return write(connection_, path_, [&] {
    execute(connection_, "INSERT INTO sessions(suite, started_at, git_commit, git_dirty, shard) VALUES(?, ?, ?, ?, ?)",
            session.suite, session.started_at, session.git_commit, session.git_dirty ? 1 : 0, session.shard);
    return connection_.getLastInsertRowid();
  });
}

void Database::finish_session(std::int64_t id) {
  write(connection_, path_, [&] {
    execute(connection_, "UPDATE sessions SET finished_at = ? WHERE id = ?",
            static_cast<std::int64_t>(std::time(nullptr)), id);
    return id;
  });
}

std::int64_t Database::add_case(std::int64_t session, const Case& one) {
  return write(connection_, path_, [&] {
    execute(connection_,
            "INSERT INTO cases(session_id, name, config, overrides, ranks, hosts, state, reason) "
            "VALUES(?, ?, ?, ?, ?, ?, ?, ?)",
            session, one.name, one.config, json_text(one.overrides), one.ranks, one.hosts, to_text(one.state),
            one.reason);
    return connection_.getLastInsertRowid();
  });
}

void Database::set_state(std::int64_t case_id, CaseState state, const std::string& reason) {
  write(connection_, path_, [&] {
    execute(connection_, "UPDATE cases SET state = ?, reason = ? WHERE id = ?", to_text(state), reason, case_id);
    return case_id;
  });
}

std::int64_t Database::environment_id(const Environment& environment) {
  const std::string hosts = json_text(environment.hosts);
  const std::string versions = json_text(environment.versions);
  execute(connection_, "INSERT OR IGNORE INTO environments(hardware, cores, hosts, versions) VALUES(?, ?, ?, ?)",
          environment.hardware, environment.cores, hosts, versions);
  SQLite::Statement found(
      connection_, "SELECT id FROM environments WHERE hardware = ? AND cores = ? AND hosts = ? AND versions = ?");
  SQLite::bind(found, environment.hardware, environment.cores, hosts, versions);
  found.executeStep();
  return found.getColumn(0).getInt64();
}

std::int64_t Database::begin_run(std::int64_t case_id, const Run& run) {
  return write(connection_, path_, [&] {
    SQLite::Statement statement(connection_,
                                "INSERT INTO runs(case_id, attempt, role, started_at, folder, environment_id) "
                                "VALUES(?, ?, ?, ?, ?, ?)");
    SQLite::bind(statement, case_id, run.attempt, run.role, run.started_at, run.folder);
    if (run.environment) statement.bind(6, environment_id(*run.environment));
    statement.exec();
    return connection_.getLastInsertRowid();
  });
}

void Database::finish_run(std::int64_t run_id, const RunResult& result) {
  write(connection_, path_, [&] {
    execute(connection_, "UPDATE runs SET exit_status = ?, error = ?, seconds = ? WHERE id = ?", result.exit_status,
            result.error, result.seconds, run_id);
    add_metrics(connection_, run_id, result.metrics);
    add_expectations(connection_, run_id, result.expectations);
    add_artefacts(connection_, run_id, result.artefacts);
    return run_id;
  });
}

}  // namespace phalanx::history
