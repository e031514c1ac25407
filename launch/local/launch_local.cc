// SPDX-License-Identifier: Apache-2.0
#include "launch/local/launch_local.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "framework/base/descriptor.h"
#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/comm/launch/host_lease.h"
#include "launch/exit_status.h"
#include "launch/failure/end_after_failure.h"
#include "launch/failure/failure.h"
#include "launch/failure/failure_report.h"
#include "launch/failure/loss.h"
#include "launch/failure/record_exception.h"
#include "launch/failure/verdict.h"
#include "launch/local/meeting_folder.h"
#include "launch/local/print_to_console.h"
#include "launch/local/rank_notes.h"
#include "launch/local/rank_threads.h"
#include "launch/local/replacements.h"
#include "launch/local/supervisor.h"
#include "launch/temporary_folder.h"

namespace phalanx {
namespace {

using std::chrono::milliseconds;

// Returns the most serious of the statuses of ranks.
int most_serious(const std::vector<int>& statuses) {
  for (const int status : {kUsage, kFailed, kRankDied, kExpectationFailed, kTooFewRanks, kInterrupted, kTimeUp}) {
    if (std::ranges::find(statuses, status) != statuses.end()) return status;
  }
  return std::ranges::max(statuses);
}

// The numbers in the job of the children of this process.
class Numbers {
 public:
  void add(int number) { numbers_.push_back(number); }
  int of(int child) const { return numbers_.at(static_cast<std::size_t>(child)); }

 private:
  std::vector<int> numbers_;  // in the order of their start
};

bool contains(const std::vector<int>& ranks, int rank) { return std::ranges::find(ranks, rank) != ranks.end(); }

// Returns true if the others go on without a rank that has ended with this status and left this failure.
bool is_loss(const LocalLaunch& options, int rank, int status, const std::optional<Failure>& failure) {
  return options.goes_on && is_failure(status) && is_loss(rank, status, failure, options.log_folder);
}

// The ranks without which the others go on.
class LostProcesses {
 public:
  LostProcesses(const LocalLaunch& options, const Numbers& numbers) : options_(options), numbers_(numbers) {}

  bool has(int rank) const { return contains(lost_, rank); }

  // Notes that a process has failed that was not a rank yet, and tells why.
  void add_newcomer(const Supervisor::End& end) {
    const int rank = numbers_.of(end.child);
    const auto failure = failure_left_by(rank, options_.log_folder);
    const std::string message = failure ? failure->message : describe_end(end.status);
    lost_.push_back(rank);
    mark_lost(options_.log_folder, {.rank = rank, .message = message, .time = end.time});
    print_to_console("Rank " + std::to_string(rank) + ", which was to take the place of a lost one, has failed: " +
                     message.substr(0, message.find('\n')));
  }

  // Returns true if the others go on, and then makes sure that there is a reason, which they tell.
  bool add(const Supervisor::End& end) {
    const int rank = numbers_.of(end.child);
    const auto failure = failure_left_by(rank, options_.log_folder);
    if (!is_loss(options_, rank, exit_status_of(end.status), failure)) {
      if (failure) ending_.push_back(*failure);
      return false;
    }
    lost_.push_back(rank);
    if (!failure && !is_noted_as_lost(rank, options_.log_folder)) {
      described_.push_back(rank);
      describe(end, end.stopped ? describe_stop(options_.lost_after) : describe_end(end.status));
    }
    return true;
  }

  // Makes sure that there is a failure of each rank that has ended the job. Returns the status of the first cause among
  // the ranks that are not lost, or their most serious one; kDone: all are lost.
  int conclude(const std::vector<Supervisor::End>& ends) const {
    std::map<int, int> statuses;  // by rank
    const auto noted = lost_ranks(options_.log_folder);
    for (const auto& end : ends) {
      const int rank = numbers_.of(end.child), status = exit_status_of(end.status);
      // A lost rank may have hung until this process has killed it.
      if (contains(lost_, rank) || (end.by_supervisor && contains(noted, rank) && !has_ended_job(rank))) continue;
      statuses[rank] = status;
      if (!is_failure(status) || end.by_supervisor || failure_left_by(rank, options_.log_folder)) continue;
      const auto taken = std::ranges::find(ending_, rank, &Failure::rank);
      if (taken != ending_.end()) {
        write_failure(options_.log_folder, *taken);
      } else {
        describe(end, describe_end(end.status));
      }
    }
    for (const auto& failure : read_failures(options_.log_folder)) {
      const auto own = statuses.find(failure.rank);
      if (own != statuses.end() && is_failure(own->second)) return own->second;
    }
    std::vector<int> all{kDone};
    for (const auto& [_, status] : statuses) all.push_back(status);
    return most_serious(all);
  }

  // Removes the ends of ranks that the others have noted as lost, and the failures that these ends explain as well. A
  // rank that has ended the job counts, even if the others have noted it as lost meanwhile.
  void settle(std::vector<RankEnd>& ends, std::vector<Failure>& failures) const {
    const auto lost = take_lost_ranks(options_.log_folder);
    const auto is_lost = [&](int rank) { return contains(lost, rank) && !has_ended_job(rank); };
    std::erase_if(failures, [&](const Failure& one) { return is_lost(one.rank) || contains(described_, one.rank); });
    for (const auto& one : ending_) {
      if (contains(lost, one.rank)) failures.push_back(one);  // its file is gone
    }
    if (options_.threads) return;  // they have one end
    const bool any_left = std::ranges::any_of(ends, [&](const RankEnd& end) { return !is_lost(end.rank); });
    if (any_left) std::erase_if(ends, [&](const RankEnd& end) { return is_lost(end.rank); });
    leave_out_unneeded(ends);
  }

 private:
  // Removes the ends of ranks whose loss the others have not noticed, if all others have ended well: they needed
  // nothing more from these ranks. A rank that has given a reason may have failed at something that others do not do.
  void leave_out_unneeded(std::vector<RankEnd>& ends) const {
    std::vector<RankEnd> lost;
    for (const auto& end : ends) {
      if (contains(described_, end.rank)) lost.push_back(end);
    }
    const auto ended_well = [&](const RankEnd& end) { return contains(described_, end.rank) || !failed(end.status); };
    if (lost.size() == ends.size() || !std::ranges::all_of(ends, ended_well)) return;
    std::erase_if(ends, [&](const RankEnd& end) { return contains(described_, end.rank); });
    for (const auto& end : lost) {
      const std::string message = end.stopped ? describe_stop(options_.lost_after) : describe_end(end.status);
      print_to_console("Rank " + std::to_string(end.rank) + " of " + std::to_string(options_.ranks) +
                       " was lost when the others did not need it any more: " + message.substr(0, message.find('\n')));
    }
  }

  bool has_ended_job(int rank) const { return std::ranges::find(ending_, rank, &Failure::rank) != ending_.end(); }

  void describe(const Supervisor::End& end, const std::string& message) const {
    write_failure(options_.log_folder,
                  {.rank = numbers_.of(end.child), .host = host_name(), .message = message, .time = end.time});
  }

  const LocalLaunch& options_;
  const Numbers& numbers_;
  std::vector<int> lost_;        // ranks without which the others go on
  std::vector<int> described_;   // lost ranks whose failures this process has written
  std::vector<Failure> ending_;  // of ranks that have ended the job
};

Supervisor::Policy policy_of(const LocalLaunch& options, const Numbers& numbers, LostProcesses& lost) {
  Supervisor::Policy policy{.stop = SIGTERM,
                            .orphaned = SIGKILL,
                            .after_failure = {{milliseconds(2000), SIGTERM}, {milliseconds(3500), SIGKILL}},
                            .forced = {{milliseconds(0), SIGKILL}},
                            .others_elsewhere = options.ranks_of_job > options.ranks || !options.meeting_folder.empty(),
                            .stop_policy = options.stop_policy,
                            .describe_saved = options.describe_saved};
  if (!options.goes_on) return policy;
  policy.stopped = std::chrono::duration_cast<milliseconds>(std::chrono::duration<double>(options.lost_after));
  policy.goes_on = [&lost](const Supervisor::End& end) { return lost.add(end); };
  policy.is_lost = [&options, &numbers](int child) {
    return !options.threads && is_noted_as_lost(numbers.of(child), options.log_folder);
  };
  return policy;
}

// Returns true if the others go on without a process that has failed, and lets the ranks know of its end.
bool goes_on_without(const Supervisor::End& end, const Numbers& numbers, const RankNotes& notes, LostProcesses& lost) {
  const int rank = numbers.of(end.child);
  notes.note_end(rank);
  if (!notes.waits(rank)) return lost.add(end);
  if (!end.by_supervisor) lost.add_newcomer(end);  // else it was not ready for the signal that asks all to stop
  return true;
}

// Lets the ranks know of the end of a process that has not failed and was to take part, or has taken part. Returns true
// if it has left the others, who go on without it.
bool has_left(const Supervisor::End& end, const Numbers& numbers, const RankNotes& notes,
              const std::function<bool(int child)>& is_lost) {
  if (failed(end.status)) return false;
  const int rank = numbers.of(end.child);
  const bool waited = notes.waits(rank);  // it may have been invited
  const bool left = !waited && exit_status_of(end.status) == kDone && is_lost(end.child);
  if (waited || left) notes.note_end(rank);
  return left;
}

// Makes the supervisor start processes for lost ranks, by `replace`.
void let_replace(Supervisor::Policy& policy, const Numbers& numbers, const RankNotes& notes, LostProcesses& lost,
                 const std::function<void(int rank)>& replace) {
  policy.waits = [&](int child) { return notes.waits(numbers.of(child)); };
  policy.goes_on = [&, replace](const Supervisor::End& end) {
    if (!goes_on_without(end, numbers, notes, lost)) return false;
    if (lost.has(numbers.of(end.child))) replace(numbers.of(end.child));
    return true;
  };
  policy.ended = [&, replace, is_lost = policy.is_lost](const Supervisor::End& end) {
    if (has_left(end, numbers, notes, is_lost)) replace(numbers.of(end.child));
  };
}

// Makes the supervisor wait for the launcher, which starts processes for lost ranks, as long as it has no others.
void wait_for_launcher(Supervisor::Policy& policy, const Numbers& numbers, const RankNotes& notes, LostProcesses& lost,
                       const std::optional<Share>& share) {
  policy.goes_on = [&](const Supervisor::End& end) { return goes_on_without(end, numbers, notes, lost); };
  const auto all_lost = std::make_shared<bool>(true);
  policy.ended = [&, all_lost, is_lost = policy.is_lost](const Supervisor::End& end) {
    const int number = numbers.of(end.child);
    const bool ended_as_lost = end.by_supervisor && failed(end.status) && is_lost(end.child);  // it hung
    const bool goes = has_left(end, numbers, notes, is_lost) || lost.has(number) || ended_as_lost;
    *all_lost = *all_lost && goes;
    if (share && share->ended) share->ended(number, goes);
  };
  policy.expects_more = [all_lost] { return *all_lost; };
}

int processes(const LocalLaunch& options) { return options.threads ? 1 : options.ranks; }

Descriptor open(const std::string& path, int flags) {
  Descriptor file(::open(path.c_str(), flags | O_CLOEXEC, 0666));
  if (!file.valid()) throw Error(path + ": " + std::generic_category().message(errno));
  return file;
}

std::string meeting_folder_of(const LocalLaunch& options, const std::string& rendezvous_folder) {
  return options.meeting_folder.empty() ? rendezvous_folder : options.meeting_folder;
}

void set_environment(int rank, const LocalLaunch& options, const std::string& rendezvous_folder) {
  const auto set = [](const char* name, const std::string& value) { ::setenv(name, value.c_str(), 1); };
  const int ranks = processes(options);
  set("RANK", std::to_string(rank));
  set("WORLD_SIZE", std::to_string(std::max(options.ranks_of_job, ranks)));
  set("LOCAL_RANK", std::to_string(rank - options.first_rank));
  set("LOCAL_WORLD_SIZE", std::to_string(ranks));
  set("PHALANX_RENDEZVOUS", options.rendezvous.empty() ? "file://" + rendezvous_folder + "/store" : options.rendezvous);
  set("PHALANX_LAUNCHER", "local");
  set(kSpareFailureFolder, rendezvous_folder);
  if (options.replacements > 0) set(kMeetingFolder, meeting_folder_of(options, rendezvous_folder));
}

// Adds what a newcomer, which is not one of the ranks yet, knows of itself.
void describe_newcomer(const Newcomer& newcomer) {
  const std::string size = std::to_string(newcomer.number + 1);  // its number is at least the number of ranks
  for (const char* name : {"WORLD_SIZE", "LOCAL_WORLD_SIZE"}) ::setenv(name, size.c_str(), 1);
  ::setenv("LOCAL_RANK", std::to_string(newcomer.local_rank).c_str(), 1);
  ::setenv(kNewcomer, to_text(newcomer).c_str(), 1);
}

// Opens the log in the child, so that no rank inherits another rank's log.
void redirect(int rank, const std::string& log, bool output) {
  ::dup2(open("/dev/null", O_RDONLY).get(), STDIN_FILENO);
  if (rank == 0 || !output) return;
  const Descriptor file = open(log, O_WRONLY | O_APPEND | O_CREAT);
  save_console();
  ::dup2(file.get(), STDOUT_FILENO);
  ::dup2(file.get(), STDERR_FILENO);
}

// The ends of ranks that are threads of this process. Thread-safe.
class LostThreads {
 public:
  explicit LostThreads(const LocalLaunch& options)
      : options_(options),
        statuses_(static_cast<std::size_t>(options.ranks)),
        running_(static_cast<std::size_t>(options.ranks), true) {}

  // Ends the process soon if the other ranks do not go on, or if only lost ranks are left, which may hang for ever.
  void ended(int rank, int status) {
    const std::lock_guard lock(mutex_);
    statuses_.at(static_cast<std::size_t>(rank)) = status;
    running_.at(static_cast<std::size_t>(rank)) = false;
    const bool others = std::ranges::find(running_, true) != running_.end();
    const bool goes_on = others && is_loss(options_, rank, status, failure_left_by(rank, options_.log_folder));
    if (is_failure(status) && !goes_on) end_.failed(status);
    if (!others || !options_.goes_on) return;
    const auto lost = lost_ranks(options_.log_folder);
    for (int other = 0; other < options_.ranks; ++other) {
      if (running_[static_cast<std::size_t>(other)] && !contains(lost, other)) return;
    }
    end_.failed(status_without(lost));
    std::cout.flush();
    std::fflush(nullptr);
  }

  // Returns the status of the process, once all ranks have ended.
  int status() const { return status_without(lost_ranks(options_.log_folder)); }

 private:
  int status_without(const std::vector<int>& lost) const {
    auto statuses = statuses_;
    for (const int rank : lost) statuses.at(static_cast<std::size_t>(rank)) = kDone;
    return most_serious(statuses);
  }

  const LocalLaunch& options_;
  std::mutex mutex_;
  std::vector<int> statuses_;  // kDone: the rank has not ended yet
  std::vector<bool> running_;
  EndAfterFailure end_;
};

// Runs all ranks in this process and returns the most serious of their statuses.
int run_as_threads(const LocalLaunch& options, const std::function<int(int)>& body) {
  LostThreads ends(options);
  run_rank_threads(options.ranks, [&](const RankInfo& rank_info) {
    const int rank = rank_info.rank;
    int status = kDone;
    try {
      status = body(rank);
    } catch (...) {
      status = record_exception(std::current_exception(), rank, options.log_folder, log_path(options.log_folder, rank));
    }
    ends.ended(rank, status);
  });
  return ends.status();
}

int run_child(int rank, const LocalLaunch& options, const std::string& rendezvous_folder,
              const std::function<int(int)>& body, const std::optional<Newcomer>& newcomer = {}) {
  const std::string log = log_path(options.log_folder, rank);
  try {
    set_environment(rank, options, rendezvous_folder);
    if (newcomer) describe_newcomer(*newcomer);
    redirect(rank, log, options.redirect_output);
    if (options.prepare) options.prepare();
    return options.threads ? run_as_threads(options, body) : body(rank);
  } catch (...) {
    return record_exception(std::current_exception(), rank, options.log_folder, log);
  }
}

// Starts the processes of a job on this host.
class Starter {
 public:
  Starter(const LocalLaunch& options, const std::string& folder, const std::function<int(int)>& body, Numbers& numbers)
      : options_(options), folder_(folder), body_(body), numbers_(numbers) {}

  void start_all(Supervisor& supervisor) {
    for (int child = 0; child < processes(options_); ++child) start(options_.first_rank + child, {}, supervisor);
  }

  void start(const Newcomer& newcomer, Supervisor& supervisor) { start(newcomer.number, newcomer, supervisor); }

 private:
  void start(int rank, const std::optional<Newcomer>& newcomer, Supervisor& supervisor) {
    supervisor.start([&] { return run_child(rank, options_, folder_, body_, newcomer); });
    numbers_.add(rank);
  }

  const LocalLaunch& options_;
  const std::string& folder_;
  const std::function<int(int)>& body_;
  Numbers& numbers_;
};

std::vector<RankEnd> ends_of_ranks(const std::vector<Supervisor::End>& ends, const Numbers& numbers) {
  std::vector<RankEnd> ranks;
  for (const auto& end : ends) {
    ranks.push_back({.rank = numbers.of(end.child),
                     .status = end.status,
                     .time = end.time,
                     .by_supervisor = end.by_supervisor,
                     .stopped = end.stopped,
                     .host = host_name()});
  }
  return ranks;
}

}  // namespace

Verdict run_local(const LocalLaunch& options, const std::function<int(int rank)>& body) {
  take_failures(options.log_folder);
  take_lost_ranks(options.log_folder);
  const TemporaryFolder rendezvous_folder(TemporaryFolder::Removal::kAlways);
  Numbers numbers;
  LostProcesses lost(options, numbers);
  Starter starter(options, rendezvous_folder.path(), body, numbers);
  Replacements replacements({.ranks = options.ranks,
                             .most = options.replacements,
                             .delay = options.replacement_delay,
                             .meeting_folder = rendezvous_folder.path()});
  std::optional<Supervisor> made;
  auto policy = policy_of(options, numbers, lost);
  if (replacements.enabled()) {
    let_replace(policy, numbers, replacements.notes(), lost, [&](int rank) {
      replacements.replace(rank, *made, [&](Newcomer newcomer) {
        newcomer.local_rank = newcomer.place;
        newcomer.local_size = options.ranks;
        starter.start(newcomer, *made);
        return true;
      });
    });
  }
  Supervisor& supervisor = made.emplace(std::move(policy));
  starter.start_all(supervisor);
  auto ends = ends_of_ranks(supervisor.run(), numbers);
  std::erase_if(ends, [&](const RankEnd& end) { return replacements.waits(end.rank); });
  auto failures = take_failures(options.log_folder, rendezvous_folder.path());
  std::erase_if(failures, [&](const Failure& one) { return replacements.waits(one.rank); });
  lost.settle(ends, failures);
  // A process with several ranks has one exit status for all of them.
  const int status = exit_status_of(ends.front().status);
  return judge(ends, std::move(failures), supervisor.interrupted(), status);
}

int run_share(const LocalLaunch& options, const std::function<int(int rank)>& body,
              const std::function<void(Share&)>& prepare) {
  const TemporaryFolder spare_folder(TemporaryFolder::Removal::kAlways);
  Numbers numbers;
  LostProcesses lost(options, numbers);
  Starter starter(options, spare_folder.path(), body, numbers);
  const RankNotes notes(options.ranks_of_job, meeting_folder_of(options, spare_folder.path()));
  std::optional<Supervisor> made;
  std::optional<Share> share;
  auto policy = policy_of(options, numbers, lost);
  if (options.replacements > 0) wait_for_launcher(policy, numbers, notes, lost, share);
  Supervisor& supervisor = made.emplace(std::move(policy));
  share.emplace(supervisor, [&](const Newcomer& newcomer) { starter.start(newcomer, supervisor); });
  starter.start_all(supervisor);
  prepare(*share);
  auto ends = supervisor.run();
  if (options.replacements > 0)
    std::erase_if(ends, [&](const auto& end) { return notes.waits(numbers.of(end.child)); });
  const int status = lost.conclude(ends);
  if (lease_is_over()) return status;  // the job may have been started again by now
  // Writes to log_folder, if that is possible now, what a rank could not write there.
  for (const auto& failure : take_failures(spare_folder.path())) write_failure(options.log_folder, failure);
  return status;
}

int launch_local(const LocalLaunch& options, const std::function<int(int rank)>& body) {
  const Verdict verdict = run_local(options, body);
  report(verdict, options.ranks, options.log_folder);
  if (options.ended) options.ended(verdict);
  return verdict.status;
}

}  // namespace phalanx
