// SPDX-License-Identifier: Apache-2.0
#include "launch/job/shrinking_world.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <utility>

#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/base/log.h"
#include "framework/base/text.h"
#include "framework/comm/texts.h"
#include "launch/failure/failure.h"
#include "launch/job/agree.h"
#include "launch/job/growth.h"
#include "launch/job/loss_notices.h"
#include "launch/local/print_to_console.h"

namespace phalanx {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kNewcomersPoll{20};

// Returns the numbers in the job of all ranks of a world.
std::vector<int> gather_numbers(int own, Communicator& world) {
  const at::Tensor all = at::empty({world.size()}, at::kInt);
  world.all_gather(all, at::full({1}, own, at::kInt)).wait();
  return {all.data_ptr<int>(), all.data_ptr<int>() + all.numel()};
}

ServingRanks serving_ranks(int ranks, const RolesConfig& roles) {
  if (roles.server == 0) return {};
  return {.first = ranks - static_cast<int>(roles.server), .replicas = static_cast<int>(roles.replicas)};
}

// Returns the error of ranks that are left without a whole replica.
std::string nobody_is_whole(const std::vector<Stranded>& stranded) {
  std::set<std::string> lost;
  for (const auto& one : stranded) lost.insert(std::to_string(one.lost));
  return "each replica has lost a rank, so nobody can go on; lost ranks: " + join({lost.begin(), lost.end()}, ", ") +
         "; set launch.restarts to start such a job again";
}

}  // namespace

ShrinkingWorld::ShrinkingWorld(Connections connections, Rank rank, const ExperimentConfig& config)
    : connections_(std::move(connections)),
      rank_(std::move(rank)),
      config_(config),
      started_(world().size()),
      everyone_(static_cast<std::size_t>(world().size())),
      invitations_(config.faults),
      serving_(serving_ranks(started_, config.roles)) {
  std::iota(everyone_.begin(), everyone_.end(), 0);
  members_ = everyone_;
  if (connections_.size() > 1) {
    throw ConfigError(
        "faults.on_lost_rank: shrink cannot rebuild the further backends that framework.selection names; "
        "remove these rules, or set faults.on_lost_rank: stop");
  }
  if (const auto why = world().why_no_shrink(); !why.empty()) {
    throw ConfigError({{.origin = "config",
                        .key = "faults.on_lost_rank",
                        .message = config.faults.on_lost_rank + ": " + why + ", or set faults.on_lost_rank: stop"}});
  }
}

bool ShrinkingWorld::shrink(Recovery& recovery) {
  if (!recovery.noticed) recovery.noticed = Clock::now();
  note_centre(recovery);
  const int before = world().size();
  while (true) {
    replace_group();
    if (world().size() == before) return false;
    try {
      const auto stranded = take_over(recovery);
      if (leaves_) return true;
      const auto own = std::ranges::find(stranded, rank_.number_in_job, &Stranded::rank);
      if (own != stranded.end()) {
        leave(reason_to_leave(*own));
        return true;
      }
      if (!stranded.empty()) continue;  // once these have left, the others form the next group
      recovery.rebuilt = true;
      return true;
    } catch (const CommError& error) {
      if (error.kind() != CommError::Kind::kPeerLost) throw;
      log_warning() << "another rank is lost: " << error.what();
    }
  }
}

void ShrinkingWorld::replace_group() {
  try {
    connections_.front().group = connections_.front().group->shrink();
  } catch (const CommError& error) {
    if (error.kind() != CommError::Kind::kPeerLost) throw;
    throw CommError(CommError::Kind::kSystem, error.what());
  }
}

Invitations::Ranks ShrinkingWorld::ranks() const {
  return {.members = members_, .mesh = config_.mesh, .first = world().rank() == 0};
}

// Ends this rank's part in the job. Its end neither fails nor completes the job, so it notes itself as lost. The first
// rank may have done so, but a network file system may show the notes of other hosts late. The others do not wait for a
// rank that has destroyed its group.
void ShrinkingWorld::leave(const std::string& reason) {
  log_info() << "this rank leaves: " << reason;
  mark_lost(rank_.log_folder, {.rank = rank_.number_in_job, .message = reason, .time = failure_time()});
  connections_.front().group.reset();
  leaves_ = true;
}

// Remembers the world in which this rank has left the parameter servers. If it was interrupted before it took over what
// they had for that world, it still has what it left before.
void ShrinkingWorld::note_centre(const Recovery& recovery) {
  const LeftCentre left = recovery.carried ? recovery.carried->centre : LeftCentre();
  if (left.order == centre_.order) return;
  centre_ = {.order = left.order, .ranks = left.on_servers ? members_ : std::vector<int>()};
}

// Returns the ranks of the world whose servers have the newest parameters; none if a rank has them in memory.
// Collective.
std::vector<int> ShrinkingWorld::ranks_with_centre() const {
  const at::Tensor all = at::empty({world().size()}, at::kLong);
  world().all_gather(all, at::full({1}, centre_.order, at::kLong)).wait();
  const auto* const orders = all.const_data_ptr<std::int64_t>();
  const auto newest = static_cast<int>(std::max_element(orders, orders + all.numel()) - orders);
  std::string text;
  for (const int rank : centre_.ranks) text += std::to_string(rank) + " ";
  std::istringstream words(broadcast_text(text, world(), newest));
  return {std::istream_iterator<int>(words), {}};
}

// Ends the job on all ranks if the parameters cannot be read from the servers that are left, or if none is left.
void ShrinkingWorld::require_servers(const std::vector<int>& left) const {
  if (serving_.count(everyone_) == 0) return;
  const auto with_centre = ranks_with_centre();
  std::string problem = lost_parts(with_centre, left, serving_);
  if (problem.empty() && serving_.count(left) == 0) problem = lost_parts(members_, left, serving_);
  if (problem.empty()) return;
  if (world().rank() == 0) print_to_console(problem);
  throw Error(problem);
}

// Agrees with the ranks that are left on who is lost, and why. If it is interrupted by a further loss, some of them may
// have done so already, so it tells all of them of all losses. Returns the ranks that have to leave.
std::vector<Stranded> ShrinkingWorld::take_over(Recovery& recovery) {
  const auto left = gather_numbers(rank_.number_in_job, world());
  if (serving_.serves(left.front())) {
    leave("no rank that trains is left");
    return {};
  }
  require_servers(left);
  const MeshShape shape = mesh_shape(config_.mesh, static_cast<std::int64_t>(members_.size()));
  const auto stranded = stranded_ranks(members_, left, ranks_per_replica(shape));
  if (stranded.size() == left.size()) throw Error(nobody_is_whole(stranded));
  share_losses(left, stranded, recovery.lost);
  std::erase_if(recovery.returned, [&](const ReturnedRank& one) {  // it has not taken part in any step
    return one.step < 0 && std::ranges::find(recovery.lost, one.rank, &LostRank::rank) != recovery.lost.end();
  });
  if (world().rank() == 0 && !rank_.thread) take_over_console();
  if (!stranded.empty()) return stranded;
  members_ = left;
  fit_config();
  for (std::size_t i = 0; i < left.size(); ++i) {
    log_info() << "rank " << left[i] << " of the job is rank " << i << " of " << left.size() << " from now on";
  }
  return {};
}

// Tells all ranks that are left of all losses.
void ShrinkingWorld::share_losses(std::vector<int> left, const std::vector<Stranded>& stranded,
                                  std::vector<LostRank>& losses) const {
  Departures departures{.stranded = stranded};
  std::ranges::sort(left);
  std::ranges::set_difference(everyone_, left, std::back_inserter(departures.lost));
  std::string told;
  if (world().rank() == 0) {
    const int go_on = world().size() - static_cast<int>(stranded.size());
    told = tell_of_losses(departures, go_on, everyone_.size(), losses, rank_.log_folder);
  }
  add_losses(broadcast_text(told, world()), losses);
}

void ShrinkingWorld::fit_config() {
  config_.launch.ranks = world().size();
  config_.roles.server = serving_.count(members_);
  config_.mesh.data = 0;
}

void ShrinkingWorld::use_members_of(const Attempt& attempt) {
  members_ = attempt.numbers();
  fit_config();
}

void ShrinkingWorld::grow(const LaunchEnvironment& launched, Recovery& recovery) {
  const bool first = world().rank() == 0;
  const auto invited = first ? invitations_.invite(ranks()) : std::nullopt;
  const std::string text = broadcast_text(invited ? to_text(*invited) : "", world());
  invitations_.invited();
  recovery.rebuilt = true;
  if (text.empty()) return;
  const Attempt attempt = parse_attempt(text);
  auto connections = connect_with_newcomers(*invitations_.meeting(), attempt, world().rank(), config_, launched);
  if (!connections) {
    log_warning() << "newcomers have not connected, so the ranks go on without them";
    if (invitations_.meeting()->is_postponed(attempt)) invitations_.postpone(ranks());
    return;
  }
  if (first) invitations_.note_part(attempt, ranks());
  connections_ = *std::move(connections);
  use_members_of(attempt);
  const int source = recovery.copies.empty() ? members_.front() : -1;
  for (const auto& one : attempt.newcomers) {
    everyone_.push_back(one.number);
    recovery.returned.push_back(
        {.rank = one.number, .in_place_of = one.in_place_of, .source = source, .lost_at = one.lost_at});
    log_info() << "rank " << one.number << " takes part"
               << (one.in_place_of == kNobody ? "" : " in place of rank " + std::to_string(one.in_place_of));
  }
  std::ranges::sort(everyone_);  // a slow newcomer may come after one with a higher number
  share_history(/*joins=*/false, recovery);
}

bool ShrinkingWorld::await_newcomers(const std::function<bool()>& stopped) {
  const auto wanted = config_.faults.min_ranks;
  const int size = world().size();
  if (invitations_.meeting() == nullptr || size >= wanted) {
    waits_until_.reset();
    return false;
  }
  const auto wait = std::chrono::duration<double>(config_.faults.wait);
  const bool first = world().rank() == 0;
  if (!waits_until_) {
    waits_until_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(wait);
    if (first && wait.count() > 0) {
      print_to_console(format_text("Waits up to %g s for new processes, since ", wait.count()) + std::to_string(size) +
                       (size == 1 ? " rank is" : " ranks are") + " left and faults.min_ranks is " +
                       std::to_string(wanted));
    }
  }
  enum Verdict : std::int64_t { kWait, kEnough, kOver };  // the greatest wins
  while (true) {
    Verdict verdict = stopped() ? kOver : kWait;
    if (first && verdict == kWait) {
      const auto waiting = static_cast<std::int64_t>(invitations_.waiting(ranks()).size());
      verdict = size + waiting >= wanted ? kEnough : Clock::now() >= *waits_until_ ? kOver : kWait;
    }
    const at::Tensor all = at::full({1}, verdict, at::kLong);
    world().all_reduce(all, Reduction::kMax).wait();
    if (all.item<std::int64_t>() != kWait) return all.item<std::int64_t>() == kEnough;
    std::this_thread::sleep_for(kNewcomersPoll);
  }
}

std::optional<ShrinkingWorld> ShrinkingWorld::join(const Newcomer& self, const Rank& rank,
                                                   const ExperimentConfig& config, const LaunchEnvironment& launched,
                                                   Recovery& recovery, const std::function<bool()>& stopped) {
  const MeetingFolder meeting(environment(kMeetingFolder).value());
  if (!ask_for_invitation(meeting, self, stopped)) return std::nullopt;
  std::optional<Attempt> attempt;
  std::optional<Connections> connections;
  while (!connections) {
    attempt = await_invitation(meeting, self.number, stopped);
    if (!attempt) return std::nullopt;
    const auto place = std::ranges::find(attempt->newcomers, self.number, &Newcomer::number);
    const auto own = attempt->first() + static_cast<int>(place - attempt->newcomers.begin());
    connections = connect_with_newcomers(meeting, *attempt, own, config, launched);
    if (connections) break;
    if (!meeting.is_postponed(*attempt)) {
      throw Error("the other ranks go on without this one, since not all have connected in time");
    }
    log_warning() << "a rank cannot write to the meeting folder, so this one waits for another invitation";
    meeting.wait_again(self.number);
  }
  try {
    meeting.note_part(*attempt);
  } catch (const Error& error) {  // the first rank notes it, too
    log_warning() << "cannot note that this rank takes part: " << error.what();
  }
  ShrinkingWorld joined(*std::move(connections), rank, config);
  joined.started_ = static_cast<int>(config.launch.ranks);
  joined.use_members_of(*attempt);
  joined.everyone_ = joined.members_;  // until it has the history
  std::ranges::sort(joined.everyone_);
  recovery.carried = nothing_carried();
  recovery.ranks = joined.started_;
  recovery.rebuilt = true;
  recovery.noticed = Clock::now();
  try {
    joined.share_history(/*joins=*/true, recovery);
  } catch (const CommError& error) {
    if (error.kind() != CommError::Kind::kPeerLost || !joined.shrink(recovery)) throw;
  }
  return joined;
}

// Gives newcomers the history of the job, and compares their processors with those of the others.
void ShrinkingWorld::share_history(bool joins, Recovery& recovery) {
  const History own{.everyone = everyone_,
                    .lost = recovery.lost,
                    .returned = recovery.returned,
                    .lost_seconds = recovery.lost_seconds};
  const std::string text = broadcast_text(world().rank() == 0 ? to_text(own) : "", world());
  const auto different = differing_processors(world());
  if (!different.empty() && same_processors_ && world().rank() == 0) print_to_console(different);
  same_processors_ = same_processors_ && different.empty();
  if (!joins) return;
  History history = parse_history(text);
  everyone_ = std::move(history.everyone);
  recovery.lost = std::move(history.lost);
  recovery.returned = std::move(history.returned);
  recovery.lost_seconds = history.lost_seconds;
}

}  // namespace phalanx
