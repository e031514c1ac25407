// SPDX-License-Identifier: Apache-2.0
#include "tools/regress/session/case_run.h"

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <utility>

#include "engine/run_folder.h"
#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/base/json.h"
#include "framework/base/text.h"
#include "launch/exit_status.h"
#include "tools/regress/results/comparison.h"
#include "tools/regress/results/run_metrics.h"

namespace phalanx::regress {
namespace {

namespace fs = std::filesystem;

using history::CaseState;

const history::MetricName kThroughput{"run", "throughput"}, kSteps{"run", "steps"};

// Returns the path of the file in which chaos lists its runs.
std::string rows_in(const std::string& folder) { return folder + "/rows.json"; }

bool exists(const std::string& path) {
  std::error_code none;
  return fs::exists(path, none);
}

std::string errors_of(const std::string& folder) {
  const std::string path = folder + "/stderr.log";
  return exists(path) ? read_file(path) : "";
}

std::int64_t step_of(const fs::path& checkpoint) {
  const std::string name = checkpoint.filename();
  return name.starts_with("step-") ? std::atoll(name.c_str() + 5) : -1;
}

// Removes what a run that was not killed in time has written after the checkpoint of `step`.
void remove_after(const std::string& folder, std::int64_t step) {
  std::error_code none;
  std::vector<fs::path> later;
  for (const auto& entry : fs::directory_iterator(RunFolder(folder).checkpoints(), none)) {
    if (step_of(entry.path()) > step) later.push_back(entry.path());
  }
  for (const auto& path : later) fs::remove_all(path, none);
  for (const auto& path : {RunFolder(folder).summary(), RunFolder(folder).weights()}) fs::remove(path, none);
}

}  // namespace

CaseRun::CaseRun(const PlannedCase& planned, const StoredCase& stored, CaseContext& context)
    : planned_(planned),
      context_(context),
      id_(stored.id),
      attempt_(stored.attempts + 1),
      retries_left_(planned.retries),
      roles_(roles_of(planned.relations)) {
  context_.database.set_state(id_, CaseState::kRunning, "");
}

int CaseRun::slots_of(const PlannedCase& planned, const Place& place) {
  if (planned.alone) return place.slots();
  int slots = 1;
  for (const Role role : roles_of(planned.relations)) {
    const auto command = command_of(planned, role, 1);
    slots = std::max(slots, place.slots_of({.ranks = command.ranks, .hosts = command.hosts}));
  }
  return slots;
}

double CaseRun::seconds() const { return std::chrono::duration<double>(Clock::now() - started_).count(); }

bool CaseRun::advance() {
  if (done_) return true;
  if (!current_.job) {
    start();
    return done_;
  }
  if (role() == Role::kFirstHalf && !current_.killed && has_checkpoint()) {
    current_.killed = true;
    current_.job->kill();
  }
  if (const auto end = current_.job->poll()) finish(*end);
  return done_;
}

void CaseRun::interrupt() {
  interrupted_ = true;
  if (current_.job) {
    current_.job->stop();
  } else {
    done_ = true;
  }
}

bool CaseRun::has_checkpoint() const {
  const auto checkpoint =
      RunFolder(half_.folder).checkpoints() + format_text("/step-%08lld", static_cast<long long>(half_.step));
  std::error_code none;
  return fs::exists(checkpoint, none);
}

void CaseRun::make_folder() {
  folder_ = "runs/" + std::to_string(context_.session) + "/" + planned_.name + "/" + std::to_string(attempt_);
  if (role() != Role::kMain) folder_ += "-" + to_text(role());
  const std::string path = context_.out + "/" + folder_;
  std::error_code error;
  fs::create_directories(fs::path(path).parent_path(), error);
  if (role() == Role::kResumed) {
    fs::copy(half_.folder, path, fs::copy_options::recursive, error);
    remove_after(path, half_.step);
  } else {
    fs::create_directories(path, error);
  }
  if (error) throw DataError(path + ": cannot be made: " + error.message());
  folders_.push_back(path);
  if (role() == Role::kMain) main_.folder = path;
  if (role() == Role::kFirstHalf) half_.folder = path;
}

// Returns the command of the next run, which writes into `folder`.
std::vector<std::string> CaseRun::words_of(const RoleCommand& command, const std::string& folder) const {
  if (planned_.config.empty()) {
    return {"/bin/sh", "-c", "cd -- \"$1\" && exec /bin/sh -c \"$2\"", "sh", planned_.folder, planned_.command};
  }
  std::vector<std::string> words{context_.program, command.program};
  words.insert(words.end(), command.words.begin(), command.words.end());
  words.push_back(role() == Role::kFaults ? "--json=" + rows_in(folder) : "--run_dir=" + folder);
  return words;
}

void CaseRun::start() {
  make_folder();
  const std::string path = folders_.back();
  const auto command = command_of(planned_, role(), half_.step);
  Job job{.name = "phalanx-" + std::to_string(context_.session) + "-" + std::to_string(id_) + "-" +
                  std::to_string(attempt_) + "-" + to_text(role()),
          .command = words_of(command, path),
          .ranks = command.ranks,
          .hosts = command.hosts,
          .survives_lost_host = command.survives_lost_host,
          .folder = path,
          .time_limit = planned_.time_limit};
  current_.id = context_.database.begin_run(id_, {.attempt = attempt_,
                                                  .role = to_text(role()),
                                                  .environment = context_.environment,
                                                  .started_at = static_cast<std::int64_t>(std::time(nullptr)),
                                                  .folder = folder_});
  current_.started = Clock::now();
  current_.killed = false;
  current_.job = context_.place.start(job);
}

history::RunResult CaseRun::read(const JobEnd& end) const {
  history::RunResult result;
  try {
    if (!planned_.config.empty() && role() != Role::kFaults) result = read_result(folders_.back());
  } catch (const DataError& error) {
    result.error = error.what();
  }
  result.exit_status = end.exit_status;
  result.seconds = std::chrono::duration<double>(Clock::now() - current_.started).count();
  result.artefacts = list_artefacts(folders_.back(), context_.out);
  return result;
}

// Adds the expectations that this run completes.
void CaseRun::compare(history::RunResult& result) {
  const Relations& relations = planned_.relations;
  const std::string& folder = folders_.back();
  switch (role()) {
    case Role::kMain:
      if (relations.of_median) {
        const auto earlier = earlier_throughput(context_.database, context_.session, planned_.name,
                                                context_.environment, relations.nights);
        result.expectations.push_back(
            check_median(value_of(result, kThroughput), earlier, *relations.of_median, relations.nights));
      }
      return;
    case Role::kReference:
      result.expectations.push_back(compare_losses(read_lines(main_.folder), read_lines(folder),
                                                   relations.same_as->tolerance, relations.same_as->steps));
      return;
    case Role::kOneRank:
      result.expectations.push_back(check_scaling(value_of(main_.result, kThroughput), planned_.ranks,
                                                  value_of(result, kThroughput), *relations.scaling));
      result.metrics.push_back(
          {.split = "case", .name = "scaling_efficiency", .value = *result.expectations.back().value});
      return;
    case Role::kFirstHalf:
      return;
    case Role::kResumed:
      result.expectations.push_back(compare_resumed(main_.folder, folder, half_.step));
      return;
    case Role::kFaults:
      result.expectations.push_back(
          check_faults(parse_json(read_file(rows_in(folder)), rows_in(folder)), *relations.faults));
      result.metrics.push_back(
          {.split = "case", .name = "survived_faults", .value = *result.expectations.back().value});
      return;
  }
}

// Returns the end of the current run. That some runs of chaos have not survived is its result, which is compared with
// the expectation.
JobEnd CaseRun::as_result(JobEnd end) const {
  if (role() != Role::kFaults || end.exit_status != kFailed || !exists(rows_in(folders_.back()))) return end;
  return {.exit_status = kDone};
}

void CaseRun::finish(const JobEnd& job_end) {
  current_.job.reset();
  const JobEnd end = as_result(job_end);
  history::RunResult result = read(end);
  const bool completed = end.exit_status == kDone || end.exit_status == kExpectationFailed;
  if (completed && !interrupted_ && result.error.empty()) {
    try {
      compare(result);
    } catch (const DataError& error) {
      result.error = error.what();
    }
  }
  Verdict verdict = judge(planned_, end, result, errors_of(folders_.back()));
  if (role() == Role::kFirstHalf && current_.killed) verdict = {};
  if (verdict.state == CaseState::kPassed && !result.error.empty()) verdict = {CaseState::kFailed, result.error};
  const bool itself_failed = verdict.state != CaseState::kPassed && !completed;
  if (itself_failed && role() != Role::kMain) verdict.reason = to_text(role()) + " run: " + verdict.reason;
  if (verdict.state != CaseState::kPassed && result.error.empty()) result.error = verdict.reason;
  context_.database.finish_run(current_.id, result);
  if (interrupted_) {
    done_ = true;
  } else if (verdict.may_be_retried && retries_left_ > 0) {
    --retries_left_;
    ++attempt_;
  } else {
    if (role() == Role::kMain) {
      main_.result = result;
      half_.step = step_to_kill_at(planned_.relations.resume_at.value_or(0), value_of(result, kSteps));
    }
    end_case(std::move(verdict));
  }
}

// Ends the case if it has failed or if this was its last run, and goes on to the next run otherwise. A main run that
// has completed is compared with others even if it has not met an expectation.
void CaseRun::end_case(Verdict verdict) {
  const bool failed = verdict.state != CaseState::kPassed;
  const bool completed = main_.result.exit_status == kDone || main_.result.exit_status == kExpectationFailed;
  if (verdict_.state == CaseState::kPassed) {
    verdict_ = verdict;
  } else if (failed) {
    verdict_.reason += "; " + verdict.reason;
  }
  const bool may_go_on =
      role() == Role::kMain ? completed : !failed || role() == Role::kReference || role() == Role::kOneRank;
  ++next_;
  done_ = next_ == roles_.size() || !may_go_on || verdict.state == CaseState::kSkipped;
  if (!done_ && role() == Role::kFirstHalf && half_.step == 0) {
    if (verdict_.state == CaseState::kPassed) {
      verdict_ = {CaseState::kFailed, "resume_at: the run has too few steps to be killed in between"};
    }
    done_ = true;
  }
}

}  // namespace phalanx::regress
