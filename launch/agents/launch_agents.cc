// SPDX-License-Identifier: Apache-2.0
#include "launch/agents/launch_agents.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "framework/base/argv.h"
#include "framework/base/console.h"
#include "framework/base/descriptor.h"
#include "framework/base/error.h"
#include "framework/base/job_secret.h"
#include "framework/base/text.h"
#include "launch/agents/agent.h"
#include "launch/agents/agent_command.h"
#include "launch/agents/beats.h"
#include "launch/agents/host_ranks.h"
#include "launch/agents/host_replacements.h"
#include "launch/agents/join_relay.h"
#include "launch/agents/joins.h"
#include "launch/agents/rank_notice.h"
#include "launch/agents/shared_folder.h"
#include "launch/exit_status.h"
#include "launch/failure/failure.h"
#include "launch/local/print_to_console.h"
#include "launch/local/supervisor.h"
#include "launch/mpirun/mpirun.h"

namespace phalanx {
namespace {

using std::chrono::milliseconds;

// Ctrl-Z would stop this process only. While it gives no answers, the leases of all hosts end.
class NotStoppedByTerminal {
 public:
  NotStoppedByTerminal() : before_(::signal(SIGTSTP, SIG_IGN)) {}
  ~NotStoppedByTerminal() { ::signal(SIGTSTP, before_); }
  NotStoppedByTerminal(const NotStoppedByTerminal&) = delete;
  NotStoppedByTerminal& operator=(const NotStoppedByTerminal&) = delete;

 private:
  void (*before_)(int);
};

// Runs in the child. Everything it needs was created before the fork. A separate process group keeps the
// terminal's signals away. The agent writes its beats to its standard output, which ssh passes on.
int become(const std::vector<char*>& command, int socket, bool with_output) {
  ::setpgid(0, 0);
  ::signal(SIGTSTP, SIG_DFL);
  ::dup2(socket, STDIN_FILENO);
  if (with_output) ::dup2(socket, STDOUT_FILENO);
  ::execvp(command[0], command.data());
  std::fprintf(stderr, "%s: %s\n", command[0], std::generic_category().message(errno).c_str());
  return 127;
}

// Closes all descriptors of this process but its standard streams and these two.
void close_others(int one, int other) {
  const auto [low, high] = std::minmax({static_cast<unsigned>(one), static_cast<unsigned>(other)});
  const auto close = [](unsigned first, unsigned last) {
    if (first <= last) ::close_range(first, last, 0);
  };
  close(STDERR_FILENO + 1, low - 1);
  close(low + 1, high - 1);
  close(high + 1, ~0U);
}

// The agents, and the sockets by which this process speaks with them.
class Agents {
 public:
  explicit Agents(const AgentsLaunch& options)
      : options_(options),
        lease_(options.lease),
        rendezvous_(options.log_folder + "/rendezvous"),
        ranks_(options.shares) {}

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
    for (std::size_t i = 0; i < agents_.size(); ++i) read(i);
    standard_output().flush();
    return conclude(ends, supervisor.interrupted());
  }

 private:
  struct Agent {
    std::size_t host;
    HostBeats beats;
    std::shared_ptr<Descriptor> socket{};
    BeatReader reader{};
    double silent_for = 0;     // seconds; 0: it has not been silent until its lease was over
    bool lost = false;         // the others go on without it
    bool told_others = false;  // that its ranks have ended for certain
    bool released = false;     // it was told to end, since the job has
    bool joined = false;       // this process cannot start another one on its host
  };

  Supervisor::Policy policy() {
    Supervisor::Policy policy{.stop = SIGUSR1,
                              .orphaned = SIGKILL,
                              .after_failure = {{milliseconds(0), SIGTERM}, {milliseconds(6000), SIGKILL}},
                              .forced = {{milliseconds(0), SIGKILL}},
                              .deliver = [this](int agent, int signal) { return tell(agent, signal); },
                              .stop_policy = options_.stop_policy,
                              .describe_saved = options_.describe_saved};
    if (!options_.goes_on) return policy;
    policy.goes_on = [this](const Supervisor::End& end) { return lose_host(end); };
    policy.is_lost = [this](int agent) { return are_lost(host_of(agent), lost_ranks(options_.log_folder)); };
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

  // A process of this host passes on what this one and the agent of a host that joins tell each other. A separate
  // process group keeps the terminal's signals away. It closes what it has inherited: its copies of other hosts'
  // connections would keep these open after their ends.
  void join(const JoinRequest& request, const Descriptor& connection, const std::string& answer) {
    const std::size_t host = ranks_.hosts();  // its index, once there is a process that speaks with it
    start(host, [&](const Descriptor& socket) {
      ::setpgid(0, 0);
      close_others(socket.get(), connection.get());
      return relay(socket, connection, answer);
    });
    ranks_.add(request.host, request.ranks);
    agents_.back().joined = true;
    agents_.back().beats.expect_by(HostBeats::Clock::now() + kStartOfAgent);
    replacing_->join(host, request.ranks);
  }

  AgentOrder order_of(const HostShare& share) const {
    return {.first_rank = share.first_rank,
            .ranks = share.ranks,
            .ranks_of_job = ranks(),
            .rendezvous = "file://" + rendezvous_.path() + "/store"};
  }

  std::size_t host_of(int agent) const { return agents_.at(static_cast<std::size_t>(agent)).host; }

  const std::string& name_of(int agent) const { return ranks_.name(host_of(agent)); }

  int ranks() const { return options_.shares.back().first_rank + options_.shares.back().ranks; }

  // Starts an agent on a host, with the ranks of `share`.
  void start(std::size_t host, const HostShare& share) {
    const std::string folder = std::filesystem::current_path().string();
    const auto command = command_on(ranks_.name(host), agent_script(folder, options_.command));
    const auto words = argv_of(command);
    const std::string variables = variables_for(order_of(share), options_.pass_variables);
    const bool with_output = !is_this_host(ranks_.name(host));
    start(host, [&](const Descriptor& socket) { return become(words, socket.get(), with_output); });
    send(agents_.size() - 1, variables + "\n");
  }

  // Starts a process that is an agent, or speaks with one, over the socket that it gets.
  void start(std::size_t host, const std::function<int(const Descriptor& socket)>& body) {
    std::array<int, 2> ends;
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
      throw Error("cannot make a socket: " + std::generic_category().message(errno));
    }
    auto own_end = std::make_shared<Descriptor>(ends[0]);
    const Descriptor socket(ends[1]);
    const std::size_t agent = agents_.size();
    supervisor_->start([&] { return body(socket); });
    agents_.push_back({.host = host, .beats = HostBeats(lease_), .socket = std::move(own_end)});
    supervisor_->watch(ends[0], [this, agent] { return read(agent); });
  }

  // Sends an order to the agent of a host, which is started without ranks if there is none.
  void tell_host(std::size_t host, const std::string& order) {
    const auto running = [&](std::size_t i) { return supervisor_->is_running(static_cast<int>(i)); };
    std::size_t agent = 0;
    while (agent < agents_.size() && (agents_[agent].host != host || !running(agent))) ++agent;
    if (agent == agents_.size()) {
      start(host, {.host = ranks_.name(host)});
      agents_.back().beats.expect_by(HostBeats::Clock::now() + kStartOfAgent);
    }
    send(agent, order + "\n");
  }

  // An agent that has ended does not need it any more. One that does not read gets no more than the system keeps.
  void send(std::size_t agent, const std::string& text, int flags = 0) {
    for (std::size_t sent = 0; sent < text.size();) {
      const int socket = agents_[agent].socket->get();
      const ssize_t count = ::send(socket, text.data() + sent, text.size() - sent, MSG_NOSIGNAL | flags);
      if (count < 0 && errno != EINTR) return;
      if (count > 0) sent += static_cast<std::size_t>(count);
    }
  }

  // Answers beats, and passes on what else has arrived. Reads at least all that the system had kept at the beginning,
  // but leaves the rest of a stream without an end for later, because other agents wait for answers. Returns false at
  // the end.
  bool read(std::size_t index) {
    Agent& agent = agents_[index];
    std::array<char, 4096> part;
    for (int parts = 0; parts < kMostParts; ++parts) {
      const ssize_t count = ::recv(agent.socket->get(), part.data(), part.size(), MSG_DONTWAIT);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
      const auto read = agent.reader.read({part.data(), static_cast<std::size_t>(count)});
      if (!read.text.empty()) standard_output().write(read.text);
      take_notices(read.lines);
      if (read.beats.empty() || agent.silent_for > 0) continue;
      agent.beats.heard(HostBeats::Clock::now());
      send(index, kAnswer + (" " + std::to_string(read.beats.back())) + "\n", MSG_DONTWAIT);
    }
    return true;
  }

  void take_notices(const std::vector<std::string>& lines) {
    if (!replacing_) return;
    bool any = false;
    for (const auto& line : lines) {
      const auto notice = parse_rank_notice(line);
      if (notice) replacing_->take(*notice);
      any = any || notice;
    }
    if (any) release_idle_agents();
  }

  // Ends the agents once no process takes part in the job any more: they would wait for lost ranks to replace.
  void release_idle_agents() {
    if (replacing_->anyone_takes_part()) return;
    for (std::size_t i = 0; i < agents_.size(); ++i) {
      if (!std::exchange(agents_[i].released, true)) tell(static_cast<int>(i), SIGKILL);
    }
  }

  // Ends what connects this process with a host that has been silent until its lease was over, and tells the other
  // hosts that the ranks of a lost host have ended. If this process was stopped, beats wait to be read.
  void look_for_silent_hosts() {
    for (std::size_t i = 0; i < agents_.size(); ++i) {
      Agent& agent = agents_[i];
      read(i);
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
    for (std::size_t i = 0; i < agents_.size(); ++i) {
      if (i != lost) send(i, orders, MSG_DONTWAIT);
    }
  }

  bool tell(int agent, int signal) {
    const auto index = static_cast<std::size_t>(agent);
    const char* order = signal == SIGUSR1 ? kStopRanks : signal == SIGTERM ? kEndRanks : kKillRanks;
    send(index, std::string(order) + "\n", MSG_DONTWAIT);
    if (signal == SIGKILL) ::shutdown(agents_[index].socket->get(), SHUT_WR);
    return signal != SIGKILL;
  }

  // Returns true if an agent has ended without a status of its own, or without ranks, so that its host is lost, and the
  // others go on.
  bool lose_host(const Supervisor::End& end) {
    Agent& agent = agents_[static_cast<std::size_t>(end.child)];
    read(static_cast<std::size_t>(end.child));  // notices that have come since the last look
    const bool spare =
        replacing_ && !replacing_->takes_part(agent.host) && are_lost(agent.host, lost_ranks(options_.log_folder));
    if (!spare && (has_own_status(end) || !training_has_begun(options_.log_folder))) return false;
    agent.lost = true;
    const std::string reason = "It was on " + name_of(end.child) + ", which is lost: " + why(end) + ".";
    auto known = read_failures(options_.log_folder);
    for (auto& one : lost_notes(options_.log_folder)) known.push_back(std::move(one));
    for (const int rank : ranks_.running(agent.host)) {
      if (std::ranges::find(known, rank, &Failure::rank) != known.end() || waits(rank)) continue;
      write_failure(options_.log_folder, {.rank = rank,
                                          .host = name_of(end.child),
                                          .message = reason,
                                          .time = end.time,
                                          .spares_host = was_without_lease(end)});
    }
    if (replacing_) replacing_->lose(agent.host, reason, /*host_lost=*/true);
    return true;
  }

  // An agent that has ended by itself may have done so before it read an order. Its host is there for another one,
  // unless it had joined.
  void note_end(const Supervisor::End& end) {
    const Agent& agent = agents_[static_cast<std::size_t>(end.child)];
    read(static_cast<std::size_t>(end.child));
    if (!agent.lost && !agent.released) {
      replacing_->lose(agent.host, "the agent on " + name_of(end.child) + " has ended", /*host_lost=*/agent.joined);
    }
    release_idle_agents();
  }

  // ssh ends with status 255 if the connection breaks, and also if its command was killed.
  std::string why(const Supervisor::End& end) const {
    const double silent = agents_[static_cast<std::size_t>(end.child)].silent_for;
    if (silent > 0) return format_text("the host has been silent for %.1f s", silent);
    if (was_without_lease(end)) {
      return format_text("the agent there heard nothing from the launcher for %.1f s",
                         std::chrono::duration<double>(lease_).count());
    }
    if (WIFSIGNALED(end.status)) return "the agent there was killed by signal " + std::to_string(WTERMSIG(end.status));
    if (WEXITSTATUS(end.status) == 255) return "the connection to it broke, or the agent there was killed";
    return "the agent there ended with status " + std::to_string(WEXITSTATUS(end.status));
  }

  Verdict conclude(const std::vector<Supervisor::End>& ends, bool interrupted) {
    auto failures = take_failures(options_.log_folder);
    const auto lost = take_lost_ranks(options_.log_folder);
    std::vector<RankEnd> good;
    std::vector<Supervisor::End> bad;
    for (const auto& end : ends) {
      if (!failed(end.status)) good.push_back({.rank = -1, .status = end.status, .time = end.time});
      if (failed(end.status) && !(options_.goes_on && are_lost(host_of(end.child), lost))) bad.push_back(end);
    }
    // A rank that has ended the job counts, even if the others have noted it as lost meanwhile.
    std::erase_if(failures, [&](const Failure& one) {
      const bool ended_job = std::ranges::any_of(
          bad, [&](const auto& end) { return has_own_status(end) && has(host_of(end.child), one.rank); });
      return (std::ranges::find(lost, one.rank) != lost.end() && !ended_job) || waits(one.rank);
    });
    if (failures.empty() && !bad.empty() && !interrupted) failures.push_back(failure_of(bad.front()));
    Verdict verdict = judge(good, std::move(failures), interrupted);
    if (!verdict.cause) return verdict;
    if (!interrupted) verdict.status = status_of(verdict.cause->rank, bad);
    verdict.others = ranks() - 1;
    return verdict;
  }

  Failure failure_of(const Supervisor::End& end) const {
    return {.rank = -1,
            .host = name_of(end.child),
            .message = "Its ranks have left no reason: " + why(end) + ".",
            .time = end.time,
            .spares_host = was_without_lease(end)};
  }

  // Returns the status of the agent of a rank (-1: of any agent) that has failed.
  int status_of(int rank, const std::vector<Supervisor::End>& bad) const {
    for (const auto& end : bad) {
      if (rank < 0 || has(host_of(end.child), rank)) return exit_status_of(end.status);
    }
    return kRankDied;
  }

  static bool was_without_lease(const Supervisor::End& end) {
    return WIFEXITED(end.status) && WEXITSTATUS(end.status) == kWithoutLease;
  }

  static bool has_own_status(const Supervisor::End& end) {
    return WIFEXITED(end.status) && exit_status_of(end.status) == WEXITSTATUS(end.status);
  }

  // Returns true if this process is not a rank yet.
  bool waits(int number) const { return replacing_ && replacing_->waits(number); }

  bool has(std::size_t host, int rank) const {
    const auto numbers = ranks_.all(host);
    return std::ranges::find(numbers, rank) != numbers.end();
  }

  // Returns true if all ranks that a host has had are among these.
  bool are_lost(std::size_t host, const std::vector<int>& lost) const {
    return std::ranges::all_of(
        ranks_.all(host), [&](int number) { return waits(number) || std::ranges::find(lost, number) != lost.end(); });
  }

  static constexpr milliseconds kLookForHosts{50};  // that join

  // The time that an agent which is started in a running job has to send its first beat. A program that lies on a slow
  // file system takes long to start.
  static constexpr std::chrono::seconds kStartOfAgent{120};

  static constexpr int kMostParts = 256;  // 1 MiB, more than the system keeps for a socket

  const AgentsLaunch& options_;
  const std::chrono::nanoseconds lease_;  // length
  SharedFolder rendezvous_;
  HostRanks ranks_;
  std::deque<Agent> agents_;  // in the order of their start; a host may have several, one after the other
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
