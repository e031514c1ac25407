// SPDX-License-Identifier: Apache-2.0
#include "launch/job/growth.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/json.h"
#include "framework/base/log.h"
#include "launch/rank/local_rank.h"
#include "launch/rank/same_start.h"

namespace phalanx {
namespace {

using Clock = std::chrono::steady_clock;
using WallTime = std::chrono::system_clock::time_point;
using nlohmann::json;

// The newcomers have loaded their data, and the others come from the same step, so they meet within milliseconds.
constexpr std::chrono::seconds kDeadline{10};
constexpr std::chrono::milliseconds kPoll{1};   // for the arrival of one rank
constexpr std::chrono::milliseconds kLook{10};  // for what ends an attempt: a look for each rank

// Ends the waits of an attempt that cannot succeed any more. Thread-safe.
class AttemptWatch {
 public:
  AttemptWatch(MeetingFolder meeting, Attempt attempt)
      : meeting_(std::move(meeting)), attempt_(std::move(attempt)), numbers_(attempt_.numbers()) {}

  // Throws CommError if one of the ranks has ended, if another rank has given up, or if the deadline is over, and from
  // then on always.
  void check() {
    const std::lock_guard lock(mutex_);
    const auto now = Clock::now();
    if (problem_.empty() && now >= next_look_) {
      next_look_ = now + kLook;
      problem_ = look(now);
    }
    if (!problem_.empty()) throw CommError(CommError::Kind::kTimeout, problem_);
  }

 private:
  std::string look(Clock::time_point now) const {
    for (const int number : numbers_) {
      if (meeting_.has_ended(number)) return "rank " + std::to_string(number) + " has ended";
    }
    if (meeting_.is_decided_against(attempt_)) return "another rank has given up";
    if (!meeting_.has_folder(attempt_)) return "somebody has removed the meeting folder";
    return now < deadline_ ? "" : "not all have come within " + std::to_string(kDeadline.count()) + " s";
  }

  const MeetingFolder meeting_;
  const Attempt attempt_;
  const std::vector<int> numbers_;
  const Clock::time_point deadline_ = Clock::now() + kDeadline;
  std::mutex mutex_;
  Clock::time_point next_look_{};
  std::string problem_{};
};

void wait_for_all(const MeetingFolder& meeting, const Attempt& attempt, AttemptWatch& watch) {
  for (int rank = 0; rank < attempt.size(); ++rank) {
    while (!meeting.has_arrived(attempt, rank)) {
      watch.check();
      std::this_thread::sleep_for(kPoll);
    }
  }
}

// Returns the connections of this rank, or nothing if it has not connected. The ranks find out in the store of the
// attempt which of them are on one host. Sets `others_may_connect` before others may have connected: each of them waits
// for all.
std::optional<Connections> try_to_connect(const MeetingFolder& meeting, const Attempt& attempt, int rank,
                                          const ExperimentConfig& config, LaunchEnvironment launched,
                                          bool& others_may_connect) {
  launched.rank_info = {.rank = rank, .size = attempt.size(), .local_rank = 0, .local_size = 0};
  const auto watch = std::make_shared<AttemptWatch>(meeting, attempt);
  bool arrived = false;
  try {
    meeting.arrive(attempt, rank);
    arrived = true;
    wait_for_all(meeting, attempt, *watch);
    const auto check = [watch] { watch->check(); };
    auto resolved = resolve_local_rank(
        launched, {.store = make_file_store(meeting.store(attempt), attempt.size(), kDeadline, check),
                   .rank = rank,
                   .size = attempt.size()});
    others_may_connect = true;
    return connect_backends(config, resolved.launched, std::move(resolved.met), attempt.numbers(), check);
  } catch (const Error& error) {
    log_warning() << "the ranks have not connected with newcomers: " << error.what();
    if (!arrived || !meeting.has_room(attempt, rank)) meeting.postpone(attempt);
    return std::nullopt;
  }
}

// Decides whether the new world is used. The folder may have disappeared.
bool decide(const MeetingFolder& meeting, const Attempt& attempt, bool connected, bool others_may_connect) {
  try {
    return meeting.decide(attempt, connected);
  } catch (const Error& error) {
    if (others_may_connect) {
      throw Error(std::string("the meeting folder has disappeared while newcomers connected, so this rank cannot know "
                              "whether the others go on with them, and ends; let no program tidy up there while a job "
                              "runs: ") +
                  error.what());
    }
    log_warning() << "the meeting folder cannot be used any more, so no newcomer takes part: " << error.what();
    return false;  // without this rank, no other one has connected
  }
}

// Returns the elements of an array with so many of them.
std::vector<JsonValue> fields_of(const JsonValue& array, std::size_t count) {
  auto fields = array.elements();
  if (fields.size() != count) array.refuse("has not " + std::to_string(count) + " elements");
  return fields;
}

}  // namespace

std::optional<Connections> connect_with_newcomers(const MeetingFolder& meeting, const Attempt& attempt, int rank,
                                                  const ExperimentConfig& config, const LaunchEnvironment& launched) {
  ExperimentConfig grown = config;  // the same on all ranks
  grown.launch.ranks = attempt.size();
  grown.mesh.data = 0;
  bool others_may_connect = false;
  auto connections = try_to_connect(meeting, attempt, rank, grown, launched, others_may_connect);
  // Once one rank has connected, all have, so the first one to know of the outcome may decide.
  if (!decide(meeting, attempt, connections.has_value(), others_may_connect)) return std::nullopt;
  if (!connections) {
    throw CommError(CommError::Kind::kSystem,
                    "the other ranks have connected with newcomers, but this rank has lost its connections meanwhile");
  }
  return connections;
}

std::string to_text(const History& history) {
  json all{{"everyone", history.everyone}, {"lost_seconds", history.lost_seconds}};
  all["lost"] = all["returned"] = json::array();
  for (const auto& [rank, reason, step, seconds] : history.lost) all["lost"].push_back({rank, reason, step, seconds});
  for (const auto& one : history.returned) {
    all["returned"].push_back(
        {one.rank, one.in_place_of, one.source, one.step, one.seconds, one.lost_at.time_since_epoch().count()});
  }
  return all.dump(-1, ' ', false, json::error_handler_t::replace);
}

History parse_history(const std::string& text) {
  const JsonValue all = parse_json(text, "the history of the job");
  History history{.everyone = all.get<std::vector<int>>("everyone"), .lost_seconds = all.get<double>("lost_seconds")};
  for (const auto& one : all.at("lost").elements()) {
    const auto fields = fields_of(one, 4);
    history.lost.push_back({.rank = fields[0].as<int>(),
                            .reason = fields[1].as<std::string>(),
                            .step = fields[2].as<std::int64_t>(),
                            .seconds = fields[3].as<double>()});
  }
  for (const auto& one : all.at("returned").elements()) {
    const auto fields = fields_of(one, 6);
    history.returned.push_back({.rank = fields[0].as<int>(),
                                .in_place_of = fields[1].as<int>(),
                                .source = fields[2].as<int>(),
                                .step = fields[3].as<std::int64_t>(),
                                .seconds = fields[4].as<double>(),
                                .lost_at = WallTime(WallTime::duration(fields[5].as<WallTime::rep>()))});
  }
  return history;
}

}  // namespace phalanx
