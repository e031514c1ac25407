// SPDX-License-Identifier: Apache-2.0
#include "tools/chaos/trial.h"

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <utility>

#include "engine/checkpoint/folder.h"
#include "engine/hooks/planned_fault.h"
#include "engine/run_folder.h"
#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/base/sockets.h"
#include "tools/chaos/act.h"
#include "tools/chaos/damage.h"
#include "tools/chaos/judge.h"
#include "tools/chaos/leftovers.h"
#include "tools/chaos/mounts.h"

namespace phalanx::chaos {
namespace {

namespace fs = std::filesystem;
using Clock = Attempt::Clock;

constexpr int kMostResumes = 3;
constexpr double kOrphanSeconds = 5;
const std::string kNoRestarts = "--set=launch.restarts=0", kNoShrinking = "--set=faults.on_lost_rank=stop";
constexpr std::int64_t kSmallSharedMemory = 64 << 10;
const std::string kSharedMemory = "/dev/shm";

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// One run with a fault, from its start until it is complete.
class TrialRun {
 public:
  TrialRun(const Trial& trial, const Launching& launching, const Reference& reference, const std::string& folder)
      : trial_(trial), fault_(*trial.fault), launching_(launching), reference_(reference), folders_(folder) {
    row_.trial = trial;
  }

  Row run() {
    const auto start = Clock::now();
    folders_.create();
    prepare();
    const bool ended = disturb();
    if (fault_.caused_by == CausedBy::kBetween && ended) damage_newest();
    clean_up();
    if (ended && fault_.keeps_results) complete();
    check_leftovers();
    row_.seconds = seconds_since(start);
    return std::move(row_);
  }

 private:
  bool is(const char* name) const { return fault_.name == name; }
  void complain(const std::string& problem) { row_.problems.push_back(problem); }

  // Much longer than a run takes: a run that goes on for longer hangs.
  double deadline() const { return 30 + 5 * reference_.seconds + 3 * launching_.timeout; }

  void prepare() {
    if (is("disk_full")) {
      fs::create_directories(folders_.run());
      disk_.emplace(folders_.run(), static_cast<std::int64_t>(4 * reference_.bytes) + (16 << 20));
    }
    if (is("shm_full")) shared_memory_.emplace(kSharedMemory, kSmallSharedMemory);
    if (shared_memory_) shared_memory_->fill();
    if (is("port_in_use")) listener_ = listen_at("127.0.0.1:0");
  }

  void clean_up() {
    shared_memory_.reset();
    listener_.close();
  }

  // Starts the run, with the fault, and waits for its end. Returns false if there was none.
  bool disturb() {
    Attempt attempt(first_starts(), folders_.attempt(0), fault_.planned.empty() ? "" : folders_.note());
    if (!attempt.wait_for_fault(deadline())) {
      complain("the fault did not happen; the run ended with status " + std::to_string(attempt.status()));
    } else if (fault_.caused_by == CausedBy::kDriver) {
      act(fault_.name, {.attempt = attempt,
                        .run_folder = folders_.run(),
                        .disk = disk_ ? &*disk_ : nullptr,
                        .hosts = launching_.hosts,
                        .go = [this] { std::ofstream(folders_.note() + ".go") << ""; }});
    }
    const bool ended = wait_for_end(attempt);
    row_.status = attempt.status();
    row_.detected_seconds = attempt.detected_seconds();
    if (!row_.detected_seconds && fault_.is_shown) complain("nothing was shown");
    errors_ = attempt.errors();
    if (ended) judge_end(launching_, errors_, row_);
    restore_network();
    return ended;
  }

  bool wait_for_end(Attempt& attempt) {
    attempt.wait(deadline());
    if (attempt.poll()) return true;
    complain("it hangs: it still ran after " + std::to_string(static_cast<int>(deadline())) + " s");
    attempt.signal_groups(SIGKILL);
    return false;
  }

  // Resumes the run until it is complete.
  void complete() {
    int status = row_.status;
    for (int resume = 1; status != 0 && resume <= kMostResumes; ++resume) {
      Start more{.command = own_settings(), .variables = variables()};
      more.command.push_back("--resume=auto");
      const bool damaged = fault_.caused_by == CausedBy::kBetween && resume == 1;
      Attempt attempt(starts_of(launching_, folders_, more), folders_.attempt(resume), damaged ? "" : folders_.note());
      if (!wait_for_end(attempt)) return;
      status = attempt.status();
      if (damaged) check_refusal(attempt);
      if (status == 0) row_.recovered = fault_.expected == Expected::kRefused ? "started again" : "resumed";
      if (status != 0 && resume == kMostResumes) {
        complain("it does not resume: status " + std::to_string(status) + "\n" + attempt.errors());
      }
    }
    if (status == 0) compare_results();
  }

  // The fault is the damage, not the kill before it.
  void check_refusal(const Attempt& attempt) {
    row_.detected_seconds = attempt.detected_seconds();
    if (attempt.errors().find("A checkpoint is skipped") == std::string::npos) {
      complain("the damage of " + damaged_ + " was not noticed");
    }
  }

  void compare_results() {
    const bool shrunk = goes_on_without_lost(fault_, launching_) && says_rank_is_lost(errors_);
    const bool bitwise = reference_.bitwise && (!shrunk || launching_.same_on_fewer_ranks);
    const std::string found = difference(folders_.run(), reference_, bitwise);
    if (!found.empty()) complain(found);
    if (found.empty() && bitwise) row_.lost_samples = 0;
    if (row_.recovered == "shrunk") {
      judge_members(launching_, summary_of(folders_.run()), errors_, row_);
    } else if (row_.recovered == "relaunched" || row_.recovered == "resumed") {
      row_.lost_steps = steps_repeated(trial_, last_resumed_step(read_file(RunFolder(folders_.run()).log(0))));
    }
  }

  void damage_newest() {
    const auto all = CheckpointFolder(RunFolder(folders_.run()).checkpoints()).list([](const std::string&) {});
    if (all.size() < 2) return complain("there were fewer than two checkpoints to damage one of");
    damaged_ = damage(all.front().path, fault_.name, trial_.seed);
  }

  void check_leftovers() {
    row_.orphans = end_orphans(folders_.base, kOrphanSeconds);
    if (row_.orphans > 0) complain("processes were left");
    row_.leaked = leaks(folders_.temporary(), folders_.run());
    for (const auto& path : unused_files(kSharedMemory, shared_before_, kOrphanSeconds)) row_.leaked.push_back(path);
    if (!row_.leaked.empty()) complain("files were left");
  }

  void restore_network() const {
    if (!fault_.needs_hosts) return;
    for (const std::vector<std::string>& command :
         {std::vector<std::string>{"ip", "link", "set", "eth0", "up"},
          std::vector<std::string>{"tc", "qdisc", "del", "dev", "eth0", "root"}}) {
      regress::capture(launching_.hosts->command(1, {}, command));  // the second one fails if there is no limit
    }
  }

  std::vector<std::pair<std::string, std::string>> variables() const {
    if (fault_.planned.empty()) return {};
    return {{kPlannedFault, to_text(PlannedFault{.kind = fault_.planned,
                                                 .rank = trial_.rank,
                                                 .step = trial_.step,
                                                 .event = trial_.event,
                                                 .seconds = fault_.seconds,
                                                 .note = folders_.note(),
                                                 .newcomer = trial_.newcomer,
                                                 .awaits_newcomers = awaits_newcomers()})}};
  }

  std::int64_t awaits_newcomers() const {
    return replaces_lost(fault_, launching_) ? step_of_return(reference_.steps) : 0;
  }

  // Returns the settings of the fault. Ranks that no launcher of ours starts cannot be started again by it, and do not
  // go on without a lost one. A job that does either at once would not let this process damage its checkpoints.
  std::vector<std::string> own_settings() const {
    std::vector<std::string> words;
    for (const auto& setting : fault_.settings) words.push_back("--set=" + setting);
    if (!may_recover(fault_)) words.insert(words.end(), {kNoRestarts, kNoShrinking});
    return words;
  }

  std::vector<Start> first_starts() const {
    Start more{.command = own_settings(), .variables = variables()};
    if (is("port_in_use")) {
      const std::string address = address_of(listener_.get());
      const std::string ranks = std::to_string(launching_.ranks);
      for (auto& [name, value] : std::initializer_list<std::pair<const char*, std::string>>{
               {"RANK", "0"}, {"WORLD_SIZE", ranks}, {"LOCAL_RANK", "0"}, {"LOCAL_WORLD_SIZE", ranks}}) {
        more.variables.emplace_back(name, value);
      }
      more.variables.emplace_back("MASTER_ADDR", "127.0.0.1");
      more.variables.emplace_back("MASTER_PORT", address.substr(address.rfind(':') + 1));
    }
    return starts_of(launching_, folders_, more);
  }

  const Trial& trial_;
  const Fault& fault_;
  const Launching& launching_;
  const Reference& reference_;
  Folders folders_;
  Row row_;
  std::optional<SmallDisk> disk_{}, shared_memory_{};
  Descriptor listener_{};
  const std::set<std::string> shared_before_ = files_of_all(kSharedMemory);
  std::string damaged_{};  // path of the file
  std::string errors_{};   // of the attempt with the fault
};

}  // namespace

Row run_trial(const Trial& trial, const Launching& launching, const Reference& reference, const std::string& folder) {
  return TrialRun(trial, launching, reference, folder).run();
}

}  // namespace phalanx::chaos
