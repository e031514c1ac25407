// SPDX-License-Identifier: Apache-2.0
#include "launch/agents/launch_agents.h"

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <utility>

#include "framework/base/argv.h"
#include "framework/base/console.h"
#include "framework/base/descriptor.h"
#include "framework/base/error.h"
#include "framework/base/job_secret.h"
#include "launch/agents/agent.h"
#include "launch/agents/agent_command.h"
#include "launch/agents/agent_connections.h"
#include "launch/agents/agent_ends.h"
#include "launch/agents/agent_process.h"
#include "launch/agents/beats.h"
#include "launch/agents/host_ranks.h"
#include "launch/agents/host_replacements.h"
#include "launch/agents/joins.h"
#include "launch/agents/rank_notice.h"
#include "launch/agents/shared_folder.h"
#include "launch/failure/failure.h"
#include "launch/local/print_to_console.h"
#include "launch/local/supervisor.h"
#include "launch/mpirun/mpirun.h"
#include "launch/signals/not_stopped_by_terminal.h"

namespace phalanx {
namespace {

using std::chrono::milliseconds;

// A job on several hosts.
class Agents {
 public:
  explicit Agents(const AgentsLaunch& options)
      : options_(options),
        lease_(options.lease),
        rendezvous_(options.log_folder + "/rendezvous"),
        ranks_(options.shares),
        agents_(options.lease, [this](const auto& lines) { take_notices(lines); }),
        ends_(agents_, ranks_,
              {.log_folder = options.log_folder,
               .lease = options.lease,
               .goes_on = options.goes_on,
               .ranks = ranks(),
               .waits = [this](int number) { return waits(number); }}) {}

  Verdict run() {
    take_failures(options_.log_folder);
    take_lost_ranks(options_.log_folder);
    Supervisor& supervisor = supervisor_.emplace(policy());
    if (options_.replacements > 0) let_replace();
    if (options_.join.max_ranks > 0) let_join();
    for (std::size_t i = 0; i < options_.shares.size(); ++i) {
      if (options_.shares[i].ranks > 0) start(i, options_.shares[i]);
    }
    supervisor.repeat(beat_interval(lease_), [this] {
      look_for_silent_hosts();
      if (replacing_) replacing_->look();
    });
    const auto ends = supervisor.run();
    agents_.read_all();
    standard_output().flush();
    return ends_.conclude(ends, supervisor.interrupted());
  }

 private:
  Supervisor::Policy policy() {
    Supervisor::Policy policy{
        .stop = SIGUSR1,
        .orphaned = SIGKILL,
        .after_failure = {{milliseconds(0), SIGTERM}, {milliseconds(6000), SIGKILL}},
        .forced = {{milliseconds(0), SIGKILL}},
        .deliver = [this](int agent, int signal) { return agents_.tell(index_of(agent), signal); },
        .stop_policy = options_.stop_policy,
        .describe_saved = options_.describe_saved};
    if (!options_.goes_on) return policy;
    policy.goes_on = [this](const Supervisor::End& end) { return lose_host(end); };
    policy.is_lost = [this](int agent) { return ends_.are_lost(host_of(agent), lost_ranks(options_.log_folder)); };
    if (options_.replacements > 0) policy.ended = [this](const Supervisor::End& end) { note_end(end); };
    return policy;
  }

  void let_replace() {
    const SharedFolder& meeting = meeting_.emplace(meeting_folder_of(options_.log_folder));
    replacing_.emplace(ranks_, *supervisor_,
                       HostReplacements::Options{
                           .replacements = {.ranks = ranks(),
                                            .most = options_.replacements,
                                            .delay = options_.replacement_delay,
                                            .meeting_folder = meeting.path()},
                           .log_folder = options_.log_folder,
                           .max_ranks = options_.join.max_ranks,
                           .tell = [this](std::size_t host, const std::string& order) { tell_host(host, order); }});
  }

  void let_join() {
    joins_.emplace(ranks_,
                   Joins::Options{.port = {.run_folder = options_.join.run_folder,
                                           .interface = options_.join.interface,
                                           .secret = job_secret()},
                                  .max_ranks = options_.join.max_ranks,
                                  .token_file = meeting_->path() + "/token",
                                  .expected = [this] { return replacing_->expected(); },
                                  .answer = [this] { return answer_for_joining(); },
                                  .join = [this](const JoinRequest& request, const Descriptor& connection,
                                                 const std::string& answer) { join(request, connection, answer); }});
    print_to_console(joins_->invitation());
    supervisor_->repeat(kLookForHosts, [this] {
      if (joins_ && !supervisor_->is_ending()) look_for_joining_hosts();
    });
  }

  // The job goes on if its port fails.
  void look_for_joining_hosts() {
    try {
      joins_->look();
    } catch (const Error& error) {
      print_to_console(std::string("No host can join any more: ") + error.what());
      joins_.reset();
    }
  }

  JoinAnswer answer_for_joining() const {
    return {.folder = std::filesystem::current_path().string(),
            .command = options_.command,
            .variables = without_secret(variables_for(order_of({}), options_.pass_variables)),
            .secret_is_of_job = job_secret().has_value()};
  }

  // A process of this host passes on what this one and the agent of a host that joins tell each other.
  void join(const JoinRequest& request, const Descriptor& connection, const std::string& answer) {
    const std::size_t host = ranks_.hosts();  // its index, once there is a process that speaks with it
    const std::size_t agent = agents_.start(
        host, *supervisor_, [&](const Descriptor& socket) { return speak_with_joined(socket, connection, answer); });
    ranks_.add(request.host, request.ranks);
    agents_[agent].joined = true;
    agents_[agent].beats.expect_by(HostBeats::Clock::now() + kStartOfAgent);
    replacing_->join(host, request.ranks);
  }

  AgentOrder order_of(const HostShare& share) const {
    return {.first_rank = share.first_rank,
            .ranks = share.ranks,
            .ranks_of_job = ranks(),
            .rendezvous = "file://" + rendezvous_.path() + "/store"};
  }

  static std::size_t index_of(int agent) { return static_cast<std::size_t>(agent); }

  std::size_t host_of(int agent) const { return agents_[index_of(agent)].host; }

  const std::string& name_of(int agent) const { return ranks_.name(host_of(agent)); }

  int ranks() const { return options_.shares.back().first_rank + options_.shares.back().ranks; }

  // Starts an agent on a host, with the ranks of `share`. Returns the agent.
  std::size_t start(std::size_t host, const HostShare& share) {
    const std::string folder = std::filesystem::current_path().string();
    const auto command = command_on(ranks_.name(host), agent_script(folder, options_.command), options_.reach);
    const auto words = argv_of(command);
    const std::string variables = variables_for(order_of(share), options_.pass_variables);
    const bool elsewhere = !is_this_host(ranks_.name(host));
    const std::size_t agent = agents_.start(host, *supervisor_, [&](const Descriptor& socket) {
      return elsewhere && options_.reach == Reach::kSrun ? relay_agent_command(command, socket)
                                                         : run_agent_command(words, socket, elsewhere);
    });
    agents_.send(agent, variables + "\n");
    return agent;
  }

  // Sends an order to the agent of a host, which is started without ranks if there is none.
  void tell_host(std::size_t host, const std::string& order) {
    const auto running = [&](std::size_t i) { return supervisor_->is_running(static_cast<int>(i)); };
    std::size_t agent = 0;
    while (agent < agents_.size() && (agents_[agent].host != host || !running(agent))) ++agent;
    if (agent == agents_.size()) {
      start(host, {.host = ranks_.name(host)});
      agents_[agent].beats.expect_by(HostBeats::Clock::now() + kStartOfAgent);
    }
    agents_.send(agent, order + "\n");
  }

  void take_notices(const std::vector<std::string>& lines) {
    if (!replacing_) return;
    bool any = false;
    for (const auto& line : lines) {
      const auto notice = parse_rank_notice(line);
      if (!notice) continue;
      replacing_->take(*notice);
      ends_.take(*notice);
      any = true;
    }
    if (any) release_idle_agents();
  }

  // Ends the agents once no process takes part in the job any more: they would wait for lost ranks to replace.
  void release_idle_agents() {
    if (replacing_->anyone_takes_part()) return;
    for (std::size_t i = 0; i < agents_.size(); ++i) {
      if (!std::exchange(agents_[i].released, true)) agents_.tell(i, SIGKILL);
    }
  }

  // Ends what connects this process with a host that has been silent until its lease was over, and tells the other
  // hosts that the ranks of a lost host have ended. If this process was stopped, beats wait to be read.
  void look_for_silent_hosts() {
    for (std::size_t i = 0; i < agents_.size(); ++i) {
      AgentConnection& agent = agents_[i];
      agents_.read(i);
      const auto now = HostBeats::Clock::now();
      if (agent.told_others || !agent.beats.is_silent(now)) continue;
      const bool running = supervisor_->is_running(static_cast<int>(i));
      if (!running && !agent.lost) continue;
      if (running) {
        agent.silent_for = agent.beats.silent_for(now);
        supervisor_->kill(static_cast<int>(i));
      }
      agent.told_others = true;
      if (options_.goes_on) tell_of_ended(i);
      if (replacing_) replacing_->note_certain(agent.host);
    }
  }

  void tell_of_ended(std::size_t lost) {
    std::string orders;  // in one piece, since a socket that is full drops what comes
    for (const int rank : ranks_.all(agents_[lost].host)) orders += kEnded + (" " + std::to_string(rank)) + "\n";
    agents_.send_to_others(lost, orders);
  }

  // Returns true if an agent has ended without a status of its own, or without ranks, so that its host is lost, and the
  // others go on.
  bool lose_host(const Supervisor::End& end) {
    AgentConnection& agent = agents_[index_of(end.child)];
    agents_.read(index_of(end.child));  // notices that have come since the last look
    const bool spare = replacing_ && !replacing_->takes_part(agent.host) &&
                       ends_.are_lost(agent.host, lost_ranks(options_.log_folder));
    if (!spare && (AgentEnds::has_own_status(end) || !training_has_begun(options_.log_folder))) return false;
    agent.lost = true;
    const std::string reason = "It was on " + name_of(end.child) + ", which is lost: " + ends_.why(end) + ".";
    auto known = read_failures(options_.log_folder);
    for (auto& one : lost_notes(options_.log_folder)) known.push_back(std::move(one));
    for (const int rank : ranks_.running(agent.host)) {
      if (std::ranges::find(known, rank, &Failure::rank) != known.end() || waits(rank)) continue;
      write_failure(options_.log_folder, {.rank = rank,
                                          .host = name_of(end.child),
                                          .message = reason,
                                          .time = end.time,
                                          .spares_host = AgentEnds::was_without_lease(end)});
    }
    if (replacing_) replacing_->lose(agent.host, reason, /*host_lost=*/true);
    return true;
  }

  // An agent that has ended by itself may have done so before it read an order. Its host is there for another one,
  // unless it had joined.
  void note_end(const Supervisor::End& end) {
    const AgentConnection& agent = agents_[index_of(end.child)];
    agents_.read(index_of(end.child));
    if (!agent.lost && !agent.released) {
      replacing_->lose(agent.host, "the agent on " + name_of(end.child) + " has ended", /*host_lost=*/agent.joined);
    }
    release_idle_agents();
  }

  // Returns true if this process is not a rank yet.
  bool waits(int number) const { return replacing_ && replacing_->waits(number); }

  static constexpr milliseconds kLookForHosts{50};  // that join

  // The time that an agent which is started in a running job has to send its first beat. A program that lies on a slow
  // file system takes long to start.
  static constexpr std::chrono::seconds kStartOfAgent{120};

  const AgentsLaunch& options_;
  const std::chrono::nanoseconds lease_;  // length
  SharedFolder rendezvous_;
  HostRanks ranks_;
  AgentConnections agents_;
  AgentEnds ends_;
  std::optional<SharedFolder> meeting_;
  std::optional<HostReplacements> replacing_;  // absent: lost ranks are not replaced
  std::optional<Supervisor> supervisor_;
  std::optional<Joins> joins_;  // absent: no host may join
};

}  // namespace

Verdict run_agents(const AgentsLaunch& options) {
  const NotStoppedByTerminal guard;
  return Agents(options).run();
}

}  // namespace phalanx
