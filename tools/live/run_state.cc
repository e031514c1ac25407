// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "engine/html/run_summary.h"
#include "engine/run_folder.h"
#include "framework/base/descriptor.h"
#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/base/printable.h"
#include "framework/base/text.h"
#include "launch/failure/failure.h"
#include "launch/stall/stall.h"
#include "tools/live/job_state.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxRanksWithNotes = 4096;  // whose files are looked for
constexpr double kLongWait = 1;           // seconds
constexpr double kFresh = 10;             // seconds; on some file systems the locks of other hosts are not visible

bool is_there(const std::string& path) {
  std::error_code none;
  return fs::exists(path, none);
}

// Returns a sentence about the ranks for which others wait, if there is one.
std::vector<std::string> notes_of_waits(const RunFolder& folder, int ranks) {
  Waits waits{
      .notes = read_wait_notes(folder.logs(), ranks), .size = ranks, .now = failure_time(), .report_after = kLongWait};
  for (auto& note : waits.notes) note.reported = false;  // that the console has it does not matter here
  for (int rank = 0; rank < ranks; ++rank) {
    if (is_there(folder.log(rank))) waits.visible.push_back(rank);
  }
  for (const auto& note : waits.notes) {
    if (const auto text = stall_message(waits, note.rank)) return {printable(*text)};
  }
  return {};
}

std::vector<std::string> notes_of(const RunFolder& folder, int ranks) {
  auto notes = notes_of_waits(folder, std::min(ranks, kMaxRanksWithNotes));
  for (const auto& failure : read_failures(folder.logs())) {
    const std::string first_line = failure.message.substr(0, failure.message.find('\n'));
    notes.push_back(format_text("rank %d has failed: ", failure.rank) + printable(first_line));
  }
  return notes;
}

JobState state_of_ended(const RunFolder& folder) {
  const RunSummary summary = read_summary(folder.summary());
  JobState state{.source = folder.path(),
                 .name = printable(summary.name),
                 .ranks = summary.ranks,
                 .step = summary.steps,
                 .seconds = summary.train_seconds,
                 .samples_per_second = summary.samples_per_second,
                 .phase = JobPhase::kEnded};
  if (summary.step_time) state.notes.push_back(printable(summary.step_time->straggler));
  return state;
}

}  // namespace

bool is_held(const std::string& run_folder) {
  const Descriptor lock(::open((run_folder + "/.lock").c_str(), O_RDONLY | O_CLOEXEC));
  return lock.valid() && ::flock(lock.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

JobState read_job_state(const std::string& path) {
  const RunFolder folder(path);
  const bool held = is_held(path);  // first: a run that ends meanwhile leaves a summary
  if (is_there(folder.live())) {
    JobState state = parse_job_state(read_file(folder.live()), folder.live());
    state.source = path;
    const bool fresh = failure_time() - state.measured_at < kFresh;
    state.phase = held || fresh ? JobPhase::kTraining : JobPhase::kDied;
    state.notes = notes_of(folder, state.ranks);
    return state;
  }
  if (!held && is_there(folder.summary())) return state_of_ended(folder);
  if (!is_there(path)) throw DataError(path + ": there is no such folder");
  if (held) throw DataError(path + ": the run has measured nothing yet");
  if (!is_there(folder.config()))
    throw DataError(path + ": is not a run folder: it has neither live.prom nor config.yaml");
  throw DataError(path + ": the run has ended without a result");
}

std::vector<std::string> find_live_runs(const std::string& folder) {
  std::vector<std::pair<fs::file_time_type, std::string>> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    std::error_code none;
    const auto time = fs::last_write_time(RunFolder(entry.path()).live(), none);
    if (!none) found.emplace_back(time, entry.path().string());
  }
  std::ranges::sort(found, std::greater());
  std::vector<std::string> paths;
  for (auto& [time, path] : found) paths.push_back(std::move(path));
  return paths;
}

}  // namespace phalanx
