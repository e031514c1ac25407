// SPDX-License-Identifier: Apache-2.0
#include "tools/regress/site/nights.h"

#include <algorithm>
#include <set>
#include <utility>

namespace phalanx::site {
namespace {

constexpr std::int64_t kMaxBetweenShards = std::int64_t{12} * 3600;  // seconds from the first shard to the last one

// Returns the night that a session completes as another of its shards, or nullptr if it begins a new night.
Night* night_to_complete(std::vector<Night>& nights, const Night& session, std::set<std::string>& shards) {
  if (nights.empty() || session.shard == "1/1") return nullptr;
  Night& last = nights.back();
  const auto count = [](const std::string& shard) { return shard.substr(shard.find('/') + 1); };
  const bool same = last.commit == session.commit && count(last.shard) == count(session.shard) &&
                    session.started_at - last.started_at < kMaxBetweenShards;
  return same && shards.insert(session.shard).second ? &last : nullptr;
}

void add_session(SuiteHistory& suite, Night session, std::set<std::string>& shards) {
  Night* night = night_to_complete(suite.nights, session, shards);
  if (night == nullptr) {
    shards = {session.shard};
    suite.nights.push_back(std::move(session));
    return;
  }
  night->sessions.push_back(session.id);
  night->dirty = night->dirty || session.dirty;
  const bool both = night->finished_at > 0 && session.finished_at > 0;
  night->finished_at = both ? std::max(night->finished_at, session.finished_at) : 0;
}

std::vector<SuiteHistory> read_suites(SQLite::Database& database) {
  std::map<std::string, SuiteHistory> suites;
  std::map<std::string, std::set<std::string>> shards;  // of the last night, by suite
  SQLite::Statement rows(database,
                         "SELECT id, suite, started_at, finished_at, git_commit, git_dirty, shard FROM sessions "
                         "ORDER BY started_at, id");
  while (rows.executeStep()) {
    Night session{.id = rows.getColumn(0).getInt64(),
                  .suite = rows.getColumn(1).getString(),
                  .started_at = rows.getColumn(2).getInt64(),
                  .finished_at = rows.getColumn(3).getInt64(),  // NULL is read as 0
                  .commit = rows.getColumn(4).getString(),
                  .dirty = rows.getColumn(5).getInt() != 0,
                  .shard = rows.getColumn(6).getString()};
    session.sessions = {session.id};
    SuiteHistory& suite = suites[session.suite];
    suite.name = session.suite;
    add_session(suite, std::move(session), shards[suite.name]);
  }
  std::vector<SuiteHistory> all;
  for (auto& [name, suite] : suites) all.push_back(std::move(suite));
  return all;
}

// Fills the cases of all suites from the table of cases.
void read_cases(SQLite::Database& database, History& history) {
  struct Place {
    std::size_t suite, night;
  };
  std::map<std::int64_t, Place> place_of;  // by session
  for (std::size_t i = 0; i < history.suites.size(); ++i) {
    for (std::size_t j = 0; j < history.suites[i].nights.size(); ++j) {
      for (const auto session : history.suites[i].nights[j].sessions) place_of[session] = {i, j};
    }
  }
  std::vector<std::map<std::string, CaseHistory>> cases(history.suites.size());
  SQLite::Statement rows(database, "SELECT id, session_id, name, config, state FROM cases ORDER BY id");
  while (rows.executeStep()) {
    const std::int64_t id = rows.getColumn(0).getInt64();
    const Place place = place_of.at(rows.getColumn(1).getInt64());
    const std::string name = rows.getColumn(2).getString();
    CaseHistory& known =
        cases[place.suite].try_emplace(name, CaseHistory{.id = id, .name = name, .config = {}}).first->second;
    known.config = rows.getColumn(3).getString();
    known.states.resize(history.suites[place.suite].nights.size(), '.');
    known.states[place.night] = letter_of(rows.getColumn(4).getString());
    history.case_of_row[id] = known.id;
  }
  for (std::size_t i = 0; i < cases.size(); ++i) {
    for (auto& [name, known] : cases[i]) history.suites[i].cases.push_back(std::move(known));
  }
}

}  // namespace

char letter_of(const std::string& state) {
  if (state == "planned") return 'l';
  static const std::set<std::string> kStates{"passed", "failed", "error", "skipped", "quarantined", "running"};
  return kStates.contains(state) ? state.front() : '?';
}

History read_history(SQLite::Database& database) {
  History history{.suites = read_suites(database)};
  for (const auto& suite : history.suites) {
    for (const auto& night : suite.nights) {
      for (const auto session : night.sessions) history.night_of[session] = night.id;
    }
  }
  read_cases(database, history);
  return history;
}

}  // namespace phalanx::site
