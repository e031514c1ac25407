// SPDX-License-Identifier: Apache-2.0
#include "launch/local/supervisor.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "launch/failure/failure.h"
#include "launch/failure/verdict.h"
#include "launch/local/print_to_console.h"
#include "launch/signals/signals.h"

namespace phalanx {
namespace {

using std::chrono::milliseconds;

// A script that wraps a program may never handle the signals that the program would handle.
constexpr milliseconds kHandlerTimeout{3000};

constexpr milliseconds kLookForStopped{100};

// Returns true if a process was stopped by a signal. A debugger stops processes in another way.
bool is_stopped(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const auto name_end = text.rfind(')');  // the name may contain anything
  return name_end != std::string::npos && text.substr(name_end, 3) == ") T";
}

}  // namespace

Supervisor::~Supervisor() {
  send(SIGKILL);
  for (auto& child : children_) {
    while (child.alive && ::waitpid(child.pid, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
}

void Supervisor::start(const std::function<int()>& body) {
  std::fflush(nullptr);  // otherwise the contents of the buffers would be written twice
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) throw Error("cannot start a process: " + std::generic_category().message(errno));
  if (pid == 0) {
    die_with_parent(policy_.orphaned, parent);
    signals_.restore_in_child();
    // An exception must not escape: this process would continue as a second supervisor of the children started so far.
    const int status = [&]() noexcept { return body(); }();
    std::cout.flush();
    std::fflush(nullptr);
    ::_exit(status);
  }
  children_.push_back({.pid = pid});
}

std::vector<Supervisor::End> Supervisor::run() {
  while (any_alive() || expects_more()) {
    events_.wait(signals_.fd(), next_deadline());
    handle_signals();
    events_.run_repeated();
    reap();
    if (policy_.waits) end_waiting_ones();
    if (is_ending() || !any_alive()) events_.drop_planned();
    events_.call_planned();
    if (watches_for_stopped()) kill_stopped();
    if (repeats_stop() && Clock::now() >= next_stop_) request_stop();
    if (end_at_ && Clock::now() >= *end_at_ && any_alive()) force_end(false);
    send_due_signals();
  }
  return std::move(ends_);
}

void Supervisor::begin_shutdown() { escalate(Phase::kShuttingDown, policy_.after_failure); }

void Supervisor::stop() {
  if (interrupted_at_) return;
  interrupted_at_ = Clock::now();
  request_stop();
}

void Supervisor::end_now() {
  escalate(Phase::kEnding, {{milliseconds(0), SIGKILL}});
  send_due_signals();
}

void Supervisor::kill(int child) { send(children_.at(static_cast<std::size_t>(child)), SIGKILL); }

void Supervisor::handle_signals() {
  for (const int signal : signals_.take()) {
    if (signal != SIGCHLD) {
      interrupt(signal);
    } else {
      events_.make_repeated_due();  // before the child is reaped
    }
  }
}

void Supervisor::interrupt(int signal) {
  const auto now = Clock::now();
  if (!interrupted_at_) {
    interrupted_at_ = now;
    if (signal == SIGTERM && policy_.stop_policy.grace.count() > 0) end_at_ = now + policy_.stop_policy.grace;
    request_stop();
    if (!policy_.quiet) print_to_console(stop_message(signal, policy_.stop_policy));
  } else if ((signal == SIGINT || signal == SIGTERM) && now - *interrupted_at_ >= kSameInterrupt) {
    force_end(true);
  }
}

void Supervisor::force_end(bool by_user) {
  end_at_.reset();
  if (phase_ == Phase::kEnding) return;
  escalate(Phase::kEnding, policy_.forced);
  send_due_signals();
  if (policy_.quiet) return;
  print_to_console(
      forced_end_message(by_user, policy_.stop_policy, policy_.describe_saved ? policy_.describe_saved() : ""));
}

void Supervisor::request_stop() {
  next_stop_ = Clock::now() + policy_.repeat_stop;
  const bool send_now = policy_.repeat_stop.count() == 0 || Clock::now() - *interrupted_at_ >= kHandlerTimeout;
  for (auto& child : children_) {
    if (send_now || catches(child.pid, policy_.stop)) send(child, policy_.stop);
  }
}

bool Supervisor::repeats_stop() const {
  return interrupted_at_ && phase_ == Phase::kRunning && policy_.repeat_stop.count() > 0;
}

void Supervisor::reap() {
  const auto ended_before = ends_.size();
  for (std::size_t i = 0; i < children_.size(); ++i) {
    Child& child = children_[i];
    int status = 0;
    if (!child.alive || ::waitpid(child.pid, &status, WNOHANG) != child.pid) continue;
    child.alive = false;
    const bool by_supervisor = WIFSIGNALED(status) && !child.killed_as_stopped &&
                               std::ranges::find(child.sent, WTERMSIG(status)) != child.sent.end();
    const End end{.child = static_cast<int>(i),
                  .status = status,
                  .time = failure_time(),
                  .by_supervisor = by_supervisor,
                  .stopped = child.killed_as_stopped};
    ends_.push_back(end);
    if (failed(status)) {
      const bool goes_on = phase_ == Phase::kRunning && policy_.goes_on && anyone_left() && policy_.goes_on(end);
      if (!goes_on) begin_shutdown();
    }
    if (policy_.ended) policy_.ended(end);
  }
  if (ends_.size() > ended_before && policy_.is_lost) end_lost_ones();
}

void Supervisor::end_waiting_ones() {
  for (std::size_t i = 0; i < children_.size(); ++i) {
    if (children_[i].alive && !waits(i)) return;
  }
  send(SIGKILL);
}

// A lost child may hang for good.
void Supervisor::end_lost_ones() {
  for (std::size_t i = 0; i < children_.size(); ++i) {
    if (children_[i].alive && !waits(i) && !policy_.is_lost(static_cast<int>(i))) return;
  }
  if (any_alive()) begin_shutdown();
}

bool Supervisor::watches_for_stopped() const { return policy_.stopped.count() > 0 && phase_ == Phase::kRunning; }

// A terminal stops this process together with its children (Ctrl-Z): such a time does not count.
void Supervisor::kill_stopped() {
  const auto now = Clock::now();
  const bool was_running = now - last_look_ < std::max<Clock::duration>(10 * kLookForStopped, policy_.stopped / 2);
  last_look_ = now;
  std::vector<bool> stopped;
  for (const auto& child : children_) stopped.push_back(child.alive && is_stopped(child.pid));
  bool others_run = policy_.others_elsewhere;  // who may go on
  for (std::size_t i = 0; i < children_.size(); ++i) others_run |= children_[i].alive && !stopped[i] && !waits(i);
  for (std::size_t i = 0; i < children_.size(); ++i) {
    Child& child = children_[i];
    if (!stopped[i]) {
      child.stopped_since.reset();
    } else if (!child.stopped_since || !was_running || !others_run) {
      child.stopped_since = now;
    } else if (now - *child.stopped_since >= policy_.stopped && !child.killed_as_stopped) {
      child.killed_as_stopped = true;
      send(child, SIGKILL);
    }
  }
}

void Supervisor::escalate(Phase phase, const std::vector<KillStage>& stages) {
  if (phase <= phase_) return;  // each failure and each further Ctrl-C would postpone it
  phase_ = phase;
  escalation_start_ = Clock::now();
  escalation_ = stages;
}

void Supervisor::send_due_signals() {
  while (!escalation_.empty() && escalation_start_ + escalation_.front().after <= Clock::now()) {
    send(escalation_.front().signal);
    escalation_.erase(escalation_.begin());
  }
}

void Supervisor::send(int signal) {
  for (auto& child : children_) send(child, signal);
}

void Supervisor::send(Child& child, int signal) {
  if (!child.alive) return;
  if (std::ranges::find(child.sent, signal) == child.sent.end()) child.sent.push_back(signal);
  const auto index = static_cast<int>(&child - children_.data());
  if (!policy_.deliver || !policy_.deliver(index, signal)) ::kill(child.pid, signal);
}

std::optional<Supervisor::Clock::time_point> Supervisor::next_deadline() const {
  std::optional<Clock::time_point> next;
  const auto sooner = [&next](Clock::time_point other) { next = next ? std::min(*next, other) : other; };
  if (repeats_stop()) sooner(next_stop_);
  if (end_at_) sooner(*end_at_);
  if (watches_for_stopped()) sooner(Clock::now() + kLookForStopped);
  if (!escalation_.empty()) sooner(escalation_start_ + escalation_.front().after);
  return next;
}

bool Supervisor::anyone_left() const {
  if (policy_.others_elsewhere) return true;
  for (std::size_t i = 0; i < children_.size(); ++i) {
    if (children_[i].alive && !waits(i)) return true;
  }
  return false;
}

bool Supervisor::expects_more() const { return !is_ending() && policy_.expects_more && policy_.expects_more(); }

bool Supervisor::any_alive() const { return std::ranges::any_of(children_, &Child::alive); }

}  // namespace phalanx
