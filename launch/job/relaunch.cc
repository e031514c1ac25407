// SPDX-License-Identifier: Apache-2.0
#include "launch/job/relaunch.h"

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <thread>
#include <utility>

#include "framework/base/argv.h"
#include "framework/base/environment.h"
#include "framework/base/text.h"
#include "framework/comm/launch/host_slots.h"
#include "launch/backoff.h"
#include "launch/exit_status.h"
#include "launch/signals/signal_watch.h"

namespace phalanx {
namespace {

using Clock = std::chrono::steady_clock;

constexpr Seconds kPatience{10};

std::string name_of(const std::string& host) { return parse_host(host).name; }

// Returns the number of ranks for which hosts have room: no more than `ranks`.
std::int64_t room_for(std::int64_t ranks, const std::vector<std::string>& hosts) {
  std::vector<HostSlots> places;
  for (const auto& host : hosts) places.push_back(parse_host(host));
  return std::min(ranks, total_slots(places).value_or(ranks));
}

// Ranks report the name that their system has, which may lack the domain.
bool is_same_host(const std::string& listed, const std::string& reported) {
  const std::string name = name_of(listed);
  return !reported.empty() && (name == reported || name.substr(0, name.find('.')) == reported);
}

// Returns true if the failure is one of the wrong results.
bool is_noted(const Failure& failure, const std::vector<WrongResult>& wrong) {
  return std::ranges::any_of(wrong, [&](const WrongResult& result) {
    return result.rank == failure.rank && result.message == failure.message;
  });
}

std::string computed_wrongly(std::int64_t times) {
  return "has computed wrongly " + std::to_string(times) + (times == 1 ? " time" : " times");
}

std::string shell_of_mpirun() {
  for (const char* variable :
       {"PRTE_MCA_plm_ssh_agent", "PRTE_MCA_plm_rsh_agent", "OMPI_MCA_plm_ssh_agent", "OMPI_MCA_plm_rsh_agent"}) {
    const auto agent = environment(variable).value_or("");
    if (!agent.empty()) return agent.substr(0, agent.find_first_of(" :"));
  }
  return "ssh";
}

// Waits for a child, but kills it after kPatience. Returns true if it ended with status 0.
bool succeeds(pid_t child) {
  const auto deadline = Clock::now() + kPatience;
  int status = 0;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    if (Clock::now() >= deadline) ::kill(child, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

RelaunchPolicy::RelaunchPolicy(const ExperimentConfig& config, std::function<bool(const std::string& host)> answers)
    : launch_(config.launch),
      min_ranks_(config.faults.min_ranks),
      ranks_of_replica_(config.mesh.pipe * config.mesh.tensor * config.mesh.context * config.mesh.expert),
      answers_(std::move(answers)) {}

std::optional<Relaunch> RelaunchPolicy::next(const Verdict& verdict, std::int64_t newest_step,
                                             const std::vector<WrongResult>& wrong) {
  why_not_.clear();
  const bool starts_again = verdict.status == kFailed || verdict.status == kRankDied || verdict.status == kTooFewRanks;
  if (!starts_again) return std::nullopt;
  if (launch_.restarts == 0) return std::nullopt;
  if (restarts_ == launch_.restarts) {
    why_not_ = "It has been started again " + std::to_string(restarts_) + " times (launch.restarts)";
    return std::nullopt;
  }
  if (repeats(verdict, newest_step)) {
    why_not_ = "It has failed twice in the same way, without a new checkpoint in between, so it is not started again";
    return std::nullopt;
  }
  count_wrong(wrong);
  if (is_only_host_wrong()) return std::nullopt;
  const auto left_out = hosts_to_leave_out(verdict, wrong);
  if (!leave_out(left_out)) return std::nullopt;
  ++restarts_;
  Relaunch again{.delay = backoff(launch_.restart_delay, fruitless_++),
                 .ranks = static_cast<int>(launch_.ranks),
                 .hosts = launch_.hosts,
                 .wrong_ranks = wrong_ranks_};
  again.notice = format_text("Starts again in %g s (%lld of %lld)", again.delay.count(),
                             static_cast<long long>(restarts_), static_cast<long long>(launch_.restarts));
  if (!left_out.empty()) {
    again.notice += ", without " + described(left_out) + ", on ranks: " + std::to_string(again.ranks);
  }
  return again;
}

bool RelaunchPolicy::repeats(const Verdict& verdict, std::int64_t newest_step) {
  const std::string message = verdict.cause ? verdict.cause->message : "";
  const bool progress = newest_step > last_step_;
  const bool own = verdict.cause && !verdict.unexplained && !verdict.cause->secondary;
  const bool same = restarts_ > 0 && own && !progress && message == last_message_;
  if (progress) fruitless_ = 0;
  last_message_ = message;
  last_step_ = newest_step;
  return same;
}

void RelaunchPolicy::count_wrong(const std::vector<WrongResult>& wrong) {
  for (const auto& result : wrong) {
    ++wrong_[result.host];
    if (std::ranges::find(wrong_ranks_, result.rank) == wrong_ranks_.end()) wrong_ranks_.push_back(result.rank);
  }
}

bool RelaunchPolicy::is_only_host_wrong() {
  if (!launch_.hosts.empty()) return false;
  const auto found = std::ranges::find_if(wrong_, [&](const auto& one) { return one.second >= launch_.exclude_after; });
  if (found == wrong_.end()) return false;
  why_not_ = found->first + " " + computed_wrongly(found->second) +
             " (launch.exclude_after), and there is no other host to go on without it, so the job is not started "
             "again; test its memory and its processor, and then continue with --resume auto";
  return true;
}

std::vector<std::string> RelaunchPolicy::hosts_to_leave_out(const Verdict& verdict,
                                                            const std::vector<WrongResult>& wrong) {
  std::vector<std::string> found;
  if (!verdict.cause) return found;
  const bool blames = !verdict.cause->secondary && !verdict.cause->spares_host && !is_noted(*verdict.cause, wrong);
  for (const auto& host : launch_.hosts) {
    auto& failures = failures_[name_of(host)];
    failures += std::ranges::count_if(wrong, [&](const auto& result) { return is_same_host(host, result.host); });
    if (blames && is_same_host(host, verdict.cause->host)) ++failures;
    const bool silent = verdict.cause->rank < 0 && !answers_(name_of(host));
    if (failures >= launch_.exclude_after || silent) found.push_back(name_of(host));
  }
  return found;
}

// Returns the names of hosts, each with the reason to leave it out, if that is what its ranks have computed.
std::string RelaunchPolicy::described(const std::vector<std::string>& hosts) const {
  std::vector<std::string> texts;
  for (const auto& host : hosts) {
    std::int64_t times = 0;
    for (const auto& [reported, count] : wrong_) times += is_same_host(host, reported) ? count : 0;
    texts.push_back(times == 0 ? host : host + " (it " + computed_wrongly(times) + ")");
  }
  return join(texts, ", ");
}

// Removes hosts. Returns false if too few are left.
bool RelaunchPolicy::leave_out(const std::vector<std::string>& hosts) {
  if (hosts.empty()) return true;
  const auto before = static_cast<std::int64_t>(launch_.hosts.size());
  std::erase_if(launch_.hosts,
                [&](const std::string& host) { return std::ranges::find(hosts, name_of(host)) != hosts.end(); });
  wrong_ranks_.clear();  // the ranks that are left get other numbers
  const std::int64_t share =
      room_for(launch_.ranks * static_cast<std::int64_t>(launch_.hosts.size()) / before, launch_.hosts);
  launch_.ranks = share - share % ranks_of_replica_;
  if (launch_.ranks >= min_ranks_) return true;
  too_few_ranks_ = launch_.ranks > 0;
  why_not_ = "Without " + described(hosts) + ", ";
  if (too_few_ranks_) {
    why_not_ += std::to_string(launch_.ranks) + (launch_.ranks == 1 ? " rank is" : " ranks are") + " left, on " +
                join(launch_.hosts, ", ") + ", fewer than faults.min_ranks: " + std::to_string(min_ranks_) +
                ", so the job is not started again; continue with --resume auto when it has more hosts, or with a "
                "lower faults.min_ranks";
  } else {
    why_not_ += "too few hosts are left to start it again";
    if (ranks_of_replica_ > 1) why_not_ += ": the mesh takes " + std::to_string(ranks_of_replica_) + " ranks";
  }
  return false;
}

bool wait_before_relaunch(Seconds delay) {
  SignalWatch signals;
  return !signals.is_stopped_within(std::chrono::ceil<std::chrono::milliseconds>(delay));
}

bool host_answers(const std::string& host, LaunchMethod method, Reach reach) {
  if (host == "localhost" || host == host_name()) return true;
  std::vector<std::string> words{shell_of_mpirun()};
  if (method == LaunchMethod::kAgents) {
    words = command_on(host, "true", reach);
  } else {
    if (words.front() == "ssh") words.insert(words.end(), {"-o", "BatchMode=yes", "-o", "ConnectTimeout=5"});
    words.insert(words.end(), {host, "true"});
  }
  pid_t child = 0;
  if (::posix_spawnp(&child, words.front().c_str(), nullptr, nullptr, argv_of(words).data(), environ) != 0)
    return false;
  return succeeds(child);
}

bool started_before() {
  const auto count = [](const char* variable) { return environment(variable).value_or("0"); };
  return count("TORCHELASTIC_RESTART_COUNT") != "0" || count("SLURM_RESTART_COUNT") != "0";
}

}  // namespace phalanx
