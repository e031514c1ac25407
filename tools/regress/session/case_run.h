// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tools/history/records.h"
#include "tools/regress/place.h"
#include "tools/regress/session/case_context.h"
#include "tools/regress/session/role.h"
#include "tools/regress/session/session_store.h"
#include "tools/regress/session/verdict.h"
#include "tools/regress/suite/planned_case.h"

namespace phalanx::regress {

/// Runs one case: its main run, and those with which it is compared, one after the other. Every run and its results are
/// recorded in the database. Destroying the object ends the run in progress.
class CaseRun {
 public:
  /// `planned` and `context` must outlive the object.
  CaseRun(const PlannedCase& planned, const StoredCase& stored, CaseContext& context);

  /// Starts the next run, or looks after the current one. Returns true once the case has ended. Does not block for
  /// long; to be called every few milliseconds.
  bool advance();

  /// Asks the current run to end. advance() then returns true when it has.
  void interrupt();

  /// Returns the number of slots that the case takes.
  static int slots_of(const PlannedCase& planned, const Place& place);

  const PlannedCase& planned() const { return planned_; }
  const Verdict& verdict() const { return verdict_; }  // once advance() has returned true
  bool interrupted() const { return interrupted_; }    // if so, the verdict means nothing
  std::int64_t id() const { return id_; }              // of the case, in the database
  std::string folder() const { return folder_; }       // of the last run, relative to the output folder
  double seconds() const;                              // since the case began
  const std::vector<std::string>& folders() const { return folders_; }  // of all runs, absolute

 private:
  using Clock = std::chrono::steady_clock;

  Role role() const { return roles_[next_]; }
  void start();
  std::vector<std::string> words_of(const RoleCommand& command, const std::string& folder) const;
  void make_folder();
  JobEnd as_result(JobEnd end) const;
  void finish(const JobEnd& job_end);
  history::RunResult read(const JobEnd& end) const;
  void compare(history::RunResult& result);
  void end_case(Verdict verdict);
  bool has_checkpoint() const;

  struct Current {
    std::unique_ptr<RunningJob> job{};  // null: the next run has not begun
    std::int64_t id = 0;                // of the run, in the database
    Clock::time_point started{};
    bool killed = false;  // by this object, for expect.resume_at
  };
  struct Main {
    std::string folder{};  // absolute
    history::RunResult result{};
  };
  struct FirstHalf {
    std::string folder{};   // absolute
    std::int64_t step = 0;  // after which it is killed
  };

  const PlannedCase& planned_;
  CaseContext& context_;
  const std::int64_t id_;
  int attempt_;
  int retries_left_;
  std::vector<Role> roles_;
  std::size_t next_ = 0;  // index of the run in progress, or the next one
  Current current_{};
  Main main_{};
  FirstHalf half_{};
  std::string folder_{};
  std::vector<std::string> folders_{};
  bool interrupted_ = false;
  bool done_ = false;
  Verdict verdict_{};
  const Clock::time_point started_ = Clock::now();
};

}  // namespace phalanx::regress
