// SPDX-License-Identifier: Apache-2.0
#include "tools/history/schema.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <gmock/gmock.h>

#include <cstdint>
#include <string_view>
#include <vector>

#include "framework/base/error.h"

namespace phalanx::history {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class Schema : public ::testing::Test {
 protected:
  int version() { return connection_.execAndGet("PRAGMA user_version").getInt(); }

  SQLite::Database connection_{":memory:", SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE};
};

TEST_F(Schema, OfAnEmptyDatabaseBecomesTheNewest) {
  migrate(connection_, "results.sqlite");
  EXPECT_EQ(version(), static_cast<int>(schema_steps().size()));
  for (const char* table : {"sessions", "cases", "environments", "runs", "metrics", "expectations", "artefacts"}) {
    EXPECT_TRUE(connection_.tableExists(table)) << table;
  }
  migrate(connection_, "results.sqlite");
  require_newest_schema(connection_, "results.sqlite");
}

TEST_F(Schema, OfAnOlderVersionIsMigratedWithItsRecords) {
  const std::vector<const char*> older{schema_steps()[0]};
  migrate(connection_, "results.sqlite", older);
  connection_.exec("INSERT INTO sessions(suite, started_at, git_commit, git_dirty) VALUES('nightly', 1, 'abc', 0)");
  const std::vector<const char*> newer{older[0], "ALTER TABLE sessions ADD COLUMN branch TEXT NOT NULL DEFAULT 'main'",
                                       "CREATE TABLE notes(session_id INTEGER REFERENCES sessions, text TEXT)"};
  migrate(connection_, "results.sqlite", newer);
  EXPECT_EQ(version(), 3);
  EXPECT_EQ(connection_.execAndGet("SELECT suite || ' ' || branch FROM sessions").getString(), "nightly main");
  EXPECT_TRUE(connection_.tableExists("notes"));
}

TEST_F(Schema, StaysAsItWasIfAStepFails) {
  const std::vector<const char*> older{schema_steps()[0]};
  migrate(connection_, "results.sqlite", older);
  const std::vector<const char*> broken{older[0], "CREATE TABLE notes(text TEXT); SELECT absent FROM notes"};
  EXPECT_THROW(migrate(connection_, "results.sqlite", broken), SQLite::Exception);
  EXPECT_EQ(version(), 1);
  EXPECT_FALSE(connection_.tableExists("notes"));
}

TEST_F(Schema, OfANewerVersionIsRefused) {
  migrate(connection_, "results.sqlite");
  connection_.exec("PRAGMA user_version = 99");
  const auto refused = ThrowsMessage<ConfigError>(HasSubstr("results.sqlite: has schema version 99, but this program"));
  EXPECT_THAT([&] { migrate(connection_, "results.sqlite"); }, refused);
  EXPECT_THAT([&] { require_newest_schema(connection_, "results.sqlite"); }, refused);
}

TEST_F(Schema, OfAnotherProgramIsRefused) {
  connection_.exec("CREATE TABLE bookmarks(url TEXT)");
  const auto refused = ThrowsMessage<ConfigError>(HasSubstr("is a database of another program"));
  EXPECT_THAT([&] { migrate(connection_, "results.sqlite"); }, refused);
  connection_.exec("PRAGMA user_version = 1");
  EXPECT_THAT([&] { migrate(connection_, "results.sqlite"); }, refused);
}

TEST_F(Schema, HasStepsThatDoNotChangeOnceReleased) {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char byte : std::string_view(schema_steps()[0])) {
    hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  }
  EXPECT_EQ(hash, 0x5fa8d113ad67bce5) << "databases of version 1 exist: add a step instead";
}

}  // namespace
}  // namespace phalanx::history
