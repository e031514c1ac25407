// SPDX-License-Identifier: Apache-2.0
#include "launch/job/growth.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/log.h"
#include "launch/rank/local_rank.h"
#include "launch/rank/same_start.h"

namespace phalanx {
namespace {

using Clock = std::chrono::steady_clock;
using WallTime = std::chrono::system_clock::time_point;
using nlohmann::json;

// The newcomers have loaded their data, and the others come from the same step, so they meet within milliseconds.
constexpr Seconds kMeetingDeadline{10};
constexpr std::chrono::milliseconds kArrivalPoll{1};

// Waits for all ranks of the attempt. Returns false if they do not come in time, or one of them has ended.
bool wait_for_all(const MeetingFolder& meeting, const Attempt& attempt) {
  const auto numbers = attempt.numbers();
  const auto deadline = Clock::now() + kMeetingDeadline;
  for (int rank = 0; rank < attempt.size();) {
    if (meeting.has_arrived(attempt, rank)) {
      ++rank;
      continue;
    }
    const bool ended = std::ranges::any_of(numbers, [&](int number) { return meeting.has_ended(number); });
    if (ended || Clock::now() >= deadline) return false;
    std::this_thread::sleep_for(kArrivalPoll);
  }
  return true;
}

// Has the ranks meet in the store of the attempt, and find out which of them are on one host.
ResolvedLaunch meet(const MeetingFolder& meeting, const Attempt& attempt, int rank, const LaunchEnvironment& launched) {
  LaunchEnvironment grown = launched;
  grown.rank_info = {.rank = rank, .size = attempt.size(), .local_rank = 0, .local_size = 0};
  grown.knows_local_rank = false;
  grown.rendezvous = "file://" + meeting.store(attempt) + "?rank=" + std::to_string(rank) +
                     "&world_size=" + std::to_string(attempt.size());
  return resolve_local_rank(grown, kMeetingDeadline);
}

}  // namespace

std::optional<Connections> connect_with_newcomers(const MeetingFolder& meeting, const Attempt& attempt, int rank,
                                                  const ExperimentConfig& config, const LaunchEnvironment& launched) {
  ExperimentConfig grown = config;  // the same on all ranks
  grown.launch.ranks = attempt.size();
  grown.mesh.data = 0;
  meeting.arrive(attempt, rank);
  std::optional<Connections> connections;
  if (wait_for_all(meeting, attempt)) {
    try {
      ResolvedLaunch resolved = meet(meeting, attempt, rank, launched);
      connections = connect_backends(grown, resolved.launched, std::move(resolved.met), attempt.numbers());
    } catch (const CommError& error) {
      log_warning() << "the ranks have not connected with newcomers: " << error.what();
    } catch (const StartMismatch& error) {
      log_warning() << "newcomers cannot take part: " << error.what();
    }
  }
  // Once one rank has connected, all have, so the first one to know of the outcome may decide.
  if (!meeting.decide(attempt, connections.has_value())) return std::nullopt;
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
  const json all = json::parse(text);
  History history{.everyone = all.at("everyone"), .lost_seconds = all.at("lost_seconds")};
  for (const auto& one : all.at("lost")) {
    history.lost.push_back({.rank = one[0], .reason = one[1], .step = one[2], .seconds = one[3]});
  }
  for (const auto& one : all.at("returned")) {
    history.returned.push_back({.rank = one[0],
                                .in_place_of = one[1],
                                .source = one[2],
                                .step = one[3],
                                .seconds = one[4],
                                .lost_at = WallTime(WallTime::duration(one[5].get<WallTime::rep>()))});
  }
  return history;
}

}  // namespace phalanx
