// SPDX-License-Identifier: Apache-2.0
#include "launch/job/shrinking_world.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <iterator>
#include <numeric>
#include <optional>
#include <set>
#include <sstream>
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
#include "launch/local/print_to_console.h"

namespace phalanx {
namespace {

using Clock = std::chrono::steady_clock;

// A rank that throws, or the launcher of one that is killed, writes the reason within milliseconds, unless the machine
// is busy. This process ends with its launcher, so it does not wait in vain for a launcher that is gone.
constexpr std::chrono::milliseconds kReasonWait{2000};

constexpr std::chrono::milliseconds kInvitationPoll{5};
constexpr std::chrono::milliseconds kNewcomersPoll{20};

// The time after which the first rank tries again to invite newcomers. Each attempt costs a step's time.
constexpr std::chrono::seconds kInvitationPause{60};

// A look into the meeting folder may be a round trip to a file server.
constexpr std::chrono::milliseconds kLookForNewcomers{50};

// Returns the first line, as part of a sentence.
std::string in_a_sentence(const std::string& message) {
  std::string line = message.substr(0, message.find('\n'));
  if (line.ends_with('.')) line.pop_back();
  if (line.starts_with("It ")) line.front() = 'i';
  return line;
}

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

std::string reason_to_leave(const Stranded& rank) { return "its replica has lost rank " + std::to_string(rank.lost); }

// Returns the error of ranks that are left without a whole replica.
std::string nobody_is_whole(const std::vector<Stranded>& stranded) {
  std::set<std::string> lost;
  for (const auto& one : stranded) lost.insert(std::to_string(one.lost));
  return "each replica has lost a rank, so nobody can go on; lost ranks: " + join({lost.begin(), lost.end()}, ", ") +
         "; set launch.restarts to start such a job again";
}

// Returns the reason for a loss that the person has been told of, by this rank or by an earlier first rank.
std::optional<std::string> known_reason(int rank, const std::vector<LostRank>& before, const std::string& log_folder) {
  const auto own = std::ranges::find(before, rank, &LostRank::rank);
  if (own != before.end()) return own->reason;
  const auto notes = lost_notes(log_folder);
  const auto note = std::ranges::find(notes, rank, &Failure::rank);
  return note == notes.end() ? std::nullopt : std::optional(note->message);
}

// Completes the entries of the ranks that take part from now on. The first rank tells the person of them. Returns true
// if there are any.
bool complete_returned(Recovery& recovery, std::int64_t step, const Communicator& world) {
  bool any = false;
  for (auto& one : recovery.returned) {
    if (one.step >= 0) continue;
    any = true;
    one.step = step;
    const auto now = std::chrono::system_clock::now();  // hosts may have different clocks
    one.seconds = std::max(0.0, std::chrono::duration<double>(now - one.lost_at).count());
    if (world.rank() != 0) continue;
    const std::string place = one.in_place_of == kNobody ? "" : " in place of rank " + std::to_string(one.in_place_of);
    const std::string source = one.source < 0 ? "all others" : "rank " + std::to_string(one.source);
    print_to_console(format_text("Rank %d takes part%s after %.2f s, after step %" PRId64
                                 ", with the state of %s, on ranks: %d",
                                 one.rank, place.c_str(), one.seconds, step, source.c_str(), world.size()));
  }
  return any;
}

}  // namespace

ShrinkingWorld::ShrinkingWorld(Connections connections, Rank rank, const ExperimentConfig& config)
    : connections_(std::move(connections)),
      rank_(std::move(rank)),
      config_(config),
      started_(world().size()),
      everyone_(static_cast<std::size_t>(world().size())),
      serving_(serving_ranks(started_, config.roles)) {
  std::iota(everyone_.begin(), everyone_.end(), 0);
  members_ = everyone_;
  const auto folder = environment(kMeetingFolder);
  if (config.faults.replaces() && folder) meeting_.emplace(*folder);
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

std::int64_t ShrinkingWorld::ranks_per_replica() const {
  const MeshShape shape = mesh_shape(config_.mesh, static_cast<std::int64_t>(members_.size()));
  return shape.product() / shape[Axis::kData];
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
  const auto stranded = stranded_ranks(members_, left, ranks_per_replica());
  if (stranded.size() == left.size()) throw Error(nobody_is_whole(stranded));
  std::vector<int> lost, ascending = left;
  std::ranges::sort(ascending);
  std::ranges::set_difference(everyone_, ascending, std::back_inserter(lost));
  std::istringstream lines(broadcast_text(world().rank() == 0 ? tell(lost, stranded, recovery.lost) : "", world()));
  for (std::string line; std::getline(lines, line);) {
    const int rank = std::stoi(line);
    if (std::ranges::find(recovery.lost, rank, &LostRank::rank) != recovery.lost.end()) continue;
    recovery.lost.push_back({.rank = rank, .reason = line.substr(line.find(' ') + 1), .step = -1});
  }
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

// Prints a line for each lost rank that nobody has told of yet, and leaves a note for the launcher. Does the same for
// the ranks that have to leave. Returns a line "RANK REASON" for each of them.
std::string ShrinkingWorld::tell(const std::vector<int>& lost, const std::vector<Stranded>& stranded,
                                 const std::vector<LostRank>& before) const {
  const int left = world().size() - static_cast<int>(stranded.size());
  std::string lines;
  for (const int rank : lost) {
    const auto known = known_reason(rank, before, rank_.log_folder);
    const std::string reason = known ? *known : reason_of(rank);
    lines += std::to_string(rank) + " " + reason + "\n";
    if (known) continue;
    print_to_console("Rank " + std::to_string(rank) + " of " + std::to_string(everyone_.size()) + " is lost, " +
                     std::to_string(left) + (left == 1 ? " is left: " : " are left: ") + reason);
    mark_lost(rank_.log_folder, {.rank = rank, .message = reason, .time = failure_time()});
  }
  for (const auto& one : stranded) {
    const std::string reason = reason_to_leave(one);
    lines += std::to_string(one.rank) + " " + reason + "\n";
    if (known_reason(one.rank, before, rank_.log_folder)) continue;
    print_to_console("Rank " + std::to_string(one.rank) + " leaves: " + reason);
    mark_lost(rank_.log_folder, {.rank = one.rank, .message = reason, .time = failure_time()});
  }
  return lines;
}

std::string ShrinkingWorld::reason_of(int lost) const {
  const auto deadline = Clock::now() + kReasonWait;
  while (true) {
    for (const auto& failure : read_failures(rank_.log_folder)) {
      if (failure.rank == lost) return in_a_sentence(failure.message);
    }
    if (Clock::now() >= deadline) return "it ended without giving a reason";
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void ShrinkingWorld::fit_config() {
  config_.launch.ranks = world().size();
  config_.roles.server = serving_.count(members_);
  config_.mesh.data = 0;
}

bool ShrinkingWorld::newcomers_wait() {
  const auto now = Clock::now();
  if (meeting_ && now >= next_look_) {
    next_look_ = now + kLookForNewcomers;
    newcomers_seen_ = !whole_replicas_of_newcomers().empty();
  }
  return newcomers_seen_;
}

// Returns the newcomers that wait, without those for whom a replica has no other ranks yet.
std::vector<Newcomer> ShrinkingWorld::whole_replicas_of_newcomers() {
  if (!meeting_ || Clock::now() < next_invitation_) return {};
  try {
    auto waiting = meeting_->waiting();
    const auto size = static_cast<std::size_t>(ranks_per_replica());
    waiting.resize(waiting.size() / size * size);
    return waiting;
  } catch (const Error& error) {
    invite_later(error);
    return {};
  }
}

// Invites the newcomers that wait. Returns the invitation, or an empty text if nobody is invited.
std::string ShrinkingWorld::invite() {
  const auto newcomers = whole_replicas_of_newcomers();
  if (newcomers.empty()) return "";
  try {
    return to_text(meeting_->invite(members_, newcomers));
  } catch (const Error& error) {
    invite_later(error);
    return "";
  }
}

// Tells the person once that the folder in which newcomers wait cannot be used.
void ShrinkingWorld::invite_later(const Error& error) {
  next_invitation_ = Clock::now() + kInvitationPause;
  log_warning() << "newcomers are not invited: " << error.what();
  if (world().rank() > 0 || std::exchange(told_of_invitations_, true)) return;
  print_to_console(std::string("Lost ranks are not replaced at present, and training goes on without them: ") +
                   error.what());
}

void ShrinkingWorld::use_members_of(const Attempt& attempt) {
  members_ = attempt.numbers();
  fit_config();
}

void ShrinkingWorld::grow(const LaunchEnvironment& launched, Recovery& recovery) {
  const bool first = world().rank() == 0;
  const std::string text = broadcast_text(first ? invite() : "", world());
  newcomers_seen_ = false;  // grow() has invited those that were seen, or nobody for a minute
  recovery.rebuilt = true;
  if (text.empty()) return;
  const Attempt attempt = parse_attempt(text);
  auto connections = connect_with_newcomers(*meeting_, attempt, world().rank(), config_, launched);
  if (!connections) {
    log_warning() << "newcomers have not connected, so the ranks go on without them";
    return;
  }
  if (first) note_part(attempt);
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

// The newcomers take part, whether or not this rank can note it; they note it, too.
void ShrinkingWorld::note_part(const Attempt& attempt) {
  try {
    meeting_->note_part(attempt);
  } catch (const Error& error) {
    invite_later(error);
  }
}

bool ShrinkingWorld::await_newcomers(const std::function<bool()>& stopped) {
  const auto wanted = config_.faults.min_ranks;
  const int ranks = world().size();
  if (!meeting_ || ranks >= wanted) {
    waits_until_.reset();
    return false;
  }
  const auto wait = std::chrono::duration<double>(config_.faults.wait);
  const bool first = world().rank() == 0;
  if (!waits_until_) {
    waits_until_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(wait);
    if (first && wait.count() > 0) {
      print_to_console(format_text("Waits up to %g s for new processes, since ", wait.count()) + std::to_string(ranks) +
                       (ranks == 1 ? " rank is" : " ranks are") + " left and faults.min_ranks is " +
                       std::to_string(wanted));
    }
  }
  enum Verdict : std::int64_t { kWait, kEnough, kOver };  // the greatest wins
  while (true) {
    Verdict verdict = stopped() ? kOver : kWait;
    if (first && verdict == kWait) {
      const auto waiting = static_cast<std::int64_t>(whole_replicas_of_newcomers().size());
      verdict = ranks + waiting >= wanted ? kEnough : Clock::now() >= *waits_until_ ? kOver : kWait;
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
  meeting.wait(self);
  auto attempt = meeting.invitation(self.number);
  for (; !attempt; attempt = meeting.invitation(self.number)) {
    if (stopped()) {
      meeting.note_end(self.number);  // the others may be about to invite it
      return std::nullopt;
    }
    std::this_thread::sleep_for(kInvitationPoll);
  }
  const auto place = std::ranges::find(attempt->newcomers, self.number, &Newcomer::number);
  const auto own = attempt->first() + static_cast<int>(place - attempt->newcomers.begin());
  auto connections = connect_with_newcomers(meeting, *attempt, own, config, launched);
  if (!connections) throw Error("the other ranks go on without this one, since not all have connected in time");
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

void tell_when_it_goes_on(Recovery& recovery, const Communicator& world, Engine& engine) {
  engine.on(Event::kStart, HookPhase::kLast, [&recovery, &world](State& state) {
    if (!recovery.noticed) return;
    const std::chrono::duration<double> seconds = Clock::now() - *std::exchange(recovery.noticed, std::nullopt);
    recovery.lost_seconds += seconds.count() + std::exchange(recovery.repeated_seconds, 0);
    for (auto& lost : recovery.lost) {
      if (lost.step >= 0) continue;
      lost.step = state.step;
      lost.seconds = seconds.count();
    }
    const bool told = complete_returned(recovery, state.step, world);
    if (world.rank() != 0 || told) return;
    print_to_console(format_text("Training goes on after %.2f s, after step %" PRId64 ", on ranks: %d", seconds.count(),
                                 state.step, world.size()));
  });
}

TooFewRanks too_few_ranks(const Recovery& recovery, int left, const ExperimentConfig& config, std::int64_t step) {
  std::vector<std::string> lost;
  for (const auto& one : recovery.lost) lost.push_back("rank " + std::to_string(one.rank) + " (" + one.reason + ")");
  const auto& faults = config.faults;
  const bool waits = faults.replaces() && faults.wait > 0;
  return TooFewRanks(std::to_string(left) + (left == 1 ? " rank is" : " ranks are") +
                     " left, fewer than faults.min_ranks: " + std::to_string(faults.min_ranks) +
                     (waits ? format_text(", and too few have come in faults.wait: %g s", faults.wait) : "") +
                     ". The run is saved after step " + std::to_string(step) +
                     "; --resume=auto continues it.\nLost: " + join(lost, ", "));
}

}  // namespace phalanx
