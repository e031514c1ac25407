// SPDX-License-Identifier: Apache-2.0
#include "tools/regress/session/run_session.h"

#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <memory>
#include <utility>

#include "engine/run_folder.h"
#include "launch/signals/signal_watch.h"
#include "tools/regress/session/case_run.h"

namespace phalanx::regress {
namespace {

using history::CaseState;

constexpr int kPauseMilliseconds = 20;

// The cases of a session that wait, and those that run.
class Schedule {
 public:
  Schedule(const Quarantine& quarantine, CaseContext& context, SessionProgress& progress)
      : quarantine_(quarantine), context_(context), progress_(progress), free_(context.place.slots()) {}

  void add(const PlannedCase& planned, const StoredCase& stored) {
    if (const auto reason = why_skipped(planned); !reason.empty()) {
      record(stored.id, {.name = planned.name, .state = CaseState::kSkipped, .reason = reason});
    } else {
      waiting_.push_back({&planned, &stored, CaseRun::slots_of(planned, context_.place)});
    }
  }

  bool is_done() const { return waiting_.empty() && running_.empty(); }

  void start_what_fits() {
    while (!waiting_.empty() && waiting_.front().slots <= free_) {
      const auto [planned, stored, slots] = waiting_.front();
      waiting_.pop_front();
      free_ -= slots;
      running_.push_back({std::make_unique<CaseRun>(*planned, *stored, context_), slots});
    }
  }

  void look_after_running() {
    std::vector<std::pair<std::string, double>> shown;
    std::erase_if(running_, [&](Running& one) {
      if (one.run->advance()) {
        free_ += one.slots;
        end(*one.run);
        return true;
      }
      shown.emplace_back(one.run->planned().name, one.run->seconds());
      return false;
    });
    progress_.update(shown);
  }

  void interrupt() {
    waiting_.clear();
    for (auto& one : running_) one.run->interrupt();
  }

 private:
  struct Waiting {
    const PlannedCase* planned;
    const StoredCase* stored;
    int slots;
  };
  struct Running {
    std::unique_ptr<CaseRun> run;
    int slots;
  };

  std::string why_skipped(const PlannedCase& planned) const {
    if (!planned.refused.empty()) return "refused: " + planned.refused;
    const int most = context_.place.most_hosts();
    if (planned.hosts <= most) return {};
    return "needs " + std::to_string(planned.hosts) + " hosts, but there " +
           (most == 1 ? "is one" : "are " + std::to_string(most));
  }

  void end(const CaseRun& run) {
    if (run.interrupted()) return context_.database.set_state(run.id(), CaseState::kPlanned, "");
    Verdict verdict = run.verdict();
    const bool failed = verdict.state == CaseState::kFailed || verdict.state == CaseState::kError;
    if (const FlakyConfig* entry = quarantine_.find(run.planned().name); entry != nullptr && failed) {
      verdict.state = CaseState::kQuarantined;
      verdict.reason += " (in quarantine until " + entry->until + ": " + entry->reason + ")";
    }
    if (verdict.state == CaseState::kPassed && !context_.keep) remove_weights(run);
    record(run.id(), {.name = run.planned().name,
                      .state = verdict.state,
                      .reason = verdict.reason,
                      .seconds = run.seconds(),
                      .folder = context_.out + "/" + run.folder()});
  }

  void record(std::int64_t id, const EndedCase& ended) {
    context_.database.set_state(id, ended.state, ended.reason);
    progress_.case_ended(ended);
  }

  static void remove_weights(const CaseRun& run) {
    std::error_code none;
    for (const auto& path : run.folders()) {
      const RunFolder folder(path);
      for (const auto& file : {folder.checkpoints(), folder.weights(), folder.embeddings()}) {
        std::filesystem::remove_all(file, none);
      }
    }
  }

  const Quarantine& quarantine_;
  CaseContext& context_;
  SessionProgress& progress_;
  int free_;  // slots
  std::deque<Waiting> waiting_{};
  std::vector<Running> running_{};
};

bool asks_to_stop(SignalWatch& signals) {
  const auto taken = signals.take();
  return std::ranges::any_of(taken, [](int one) { return one == SIGINT || one == SIGTERM || one == SIGHUP; });
}

}  // namespace

bool run_session(const std::vector<PlannedCase>& planned, const StoredSession& stored, const Quarantine& quarantine,
                 CaseContext& context, SessionProgress& progress) {
  SignalWatch signals;
  context.place.end_orphans();
  Schedule schedule(quarantine, context, progress);
  for (std::size_t i = 0; i < planned.size(); ++i) {
    if (!is_final(stored.cases[i].state)) schedule.add(planned[i], stored.cases[i]);
  }
  bool interrupted = false;
  while (!schedule.is_done()) {
    if (asks_to_stop(signals) && !interrupted) {
      interrupted = true;
      schedule.interrupt();
    }
    schedule.start_what_fits();
    schedule.look_after_running();
    pollfd ready{.fd = signals.fd(), .events = POLLIN, .revents = 0};
    ::poll(&ready, 1, kPauseMilliseconds);
  }
  return !interrupted;
}

}  // namespace phalanx::regress
