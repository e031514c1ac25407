// SPDX-License-Identifier: Apache-2.0
#include "launch/stall/stall_watch.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <exception>
#include <filesystem>
#include <mutex>
#include <system_error>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/base/log.h"
#include "framework/base/text.h"
#include "framework/observe/hang/collect.h"
#include "framework/observe/hang/explain.h"
#include "framework/observe/hang/process_state.h"
#include "launch/failure/failure.h"
#include "launch/failure/failure_report.h"
#include "launch/stall/stall.h"

namespace phalanx {
namespace {

constexpr Seconds kMaxCheckInterval{1};
constexpr double kExplainBefore = 0.75;  // of the timeout: the last moment at which all ranks are certainly there

std::string name_of(const FlightRecorder::Record& record) {
  return std::string(to_string(record.call.op)) + " #" + std::to_string(record.sequence) + " of " + record.group;
}

bool is_message(const FlightRecorder::Record& record) {
  return record.call.op == Op::kSend || record.call.op == Op::kRecv;
}

// Returns true if a rank is in the log folder that says that it waits. Not for each step: it reads the folder.
bool anyone_waits(const std::string& folder) {
  std::error_code none;
  std::filesystem::directory_iterator entry(folder, none);
  for (const std::filesystem::directory_iterator end; !none && entry != end; entry.increment(none)) {
    if (entry->path().extension() == ".waiting") return true;
  }
  return false;
}

}  // namespace

bool StallWatch::Running::same_as(const Running& other) const {
  return oldest.number == other.oldest.number && newest_running == other.newest_running &&
         newest_launched == other.newest_launched;
}

StallWatch::StallWatch(const Communicator& world, Options options)
    : world_(world),
      options_(std::move(options)),
      interval_(std::min(kMaxCheckInterval, options_.warn_after / 4)),
      own_(world.rank(), options_.dataset, options_.names),
      slow_(world.size(), options_.warn_after, [this] { return picture_of_job(options_.log_folder, world_.size()); }) {
  remove_wait_note(options_.log_folder, world_.rank());  // left by a run that was killed
  std::error_code ignored;
  if (world_.rank() == 0) std::filesystem::remove(options_.log_folder + "/" + kHangFile, ignored);
  thread_ = std::jthread([this](const std::stop_token& stop) { watch(stop); });
}

StallWatch::~StallWatch() {
  thread_.request_stop();
  thread_.join();
  if (std::uncaught_exceptions() > 0) {
    take_picture();
    const bool has_waited = !picture_.operations.empty() && picture_.operations.back().state == "failed";
    if (wait_ || has_waited) explain_once();
  }
  if (note_) remove_wait_note(options_.log_folder, world_.rank());
  remove_picture(options_.log_folder, world_.rank());
}

void StallWatch::watch(const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex);
  while (!stop.stop_requested()) {
    stopped.wait_for(lock, stop, interval_, [] { return false; });
    if (stop.stop_requested()) return;
    try {
      check_progress();
      report_slow_rank();
    } catch (const std::exception& error) {
      // A run must not end because it cannot report why it is slow, but the user should know that it cannot.
      if (!std::exchange(warned_, true)) options_.print("framework.warn_after: " + std::string(error.what()));
    }
  }
}

// Returns the running operations, if any. Posted messages for which no one waits are not running.
std::optional<StallWatch::Running> StallWatch::running() const {
  const auto records = world_.recorder().records();
  const auto runs = [](const auto& record) { return record.state == FlightRecorder::State::kRunning; };
  const auto oldest = std::ranges::find_if(records, runs);
  if (oldest == records.end()) return std::nullopt;
  const auto newest = std::find_if(records.rbegin(), records.rend(), runs);
  return Running{*oldest, newest->number, records.back().number};
}

void StallWatch::take_picture() {
  picture_ = own_.take(world_.recorder().records(), wait_ ? since_ : 0);
  if (options_.page == nullptr) return;
  picture_.blocked_in = options_.page->blocked_in();
  picture_.activity = to_string(options_.page->activity());
  picture_.activity_since = picture_.taken - options_.page->activity_seconds();
  picture_.step = options_.page->step();
  options_.page->publish(to_json(picture_));
}

void StallWatch::check_progress() {
  auto now_running = running();
  if (!now_running || !wait_ || !wait_->same_as(*now_running)) {
    finish_wait();
    wait_ = std::move(now_running);
    since_ = failure_time();
    take_picture();
    if (!wait_ && options_.page != nullptr) show_others();
    return;
  }
  take_picture();
  if (!note_ && failure_time() - since_ >= interval_.count()) {
    const auto& record = wait_->oldest;
    const bool to_one = is_message(record) && record.group == world_.name();
    note_ = {.rank = world_.rank(),
             .operation = name_of(record),
             .peer = to_one ? record.call.peer : -1,
             .since = since_,
             .reported = false};
    write_wait_note(options_.log_folder, *note_);
    write_picture(options_.log_folder, picture_);
  }
  if (note_ && !note_->reported) report_if_due();
  const double timeout = options_.timeout.count();
  if (timeout > 0 && failure_time() - since_ >= kExplainBefore * timeout) explain_once();
}

// Shows the ranks of other hosts what this rank does while they wait, and reports if all ranks stand like it.
void StallWatch::show_others() {
  const bool stands = options_.page->activity_seconds() >= 2 * interval_.count();
  if (!stands) {
    if (std::exchange(told_, false)) options_.explained("");
    shown_ = false;
  }
  if (!stands || (shown_ && world_.rank() != 0)) return;
  if (anyone_waits(options_.log_folder)) {
    if (!std::exchange(shown_, true)) write_picture(options_.log_folder, picture_);
  } else {
    report_standing();
  }
}

// A rank that stands because its operation has failed says so in its error.
void StallWatch::report_standing() {
  const Activity activity = options_.page->activity();
  const bool waits = activity == Activity::kLoading || activity == Activity::kUpdate;
  const bool due = options_.page->activity_seconds() >= options_.warn_after.count();
  if (explained_ || world_.rank() != 0 || !waits || !due || std::exchange(told_, true)) return;
  const std::string sentence = explain_now();
  options_.explained(sentence);
  options_.print(sentence);
}

void StallWatch::report_slow_rank() {
  if (world_.rank() != 0 || options_.page == nullptr) return;
  if (const auto sentence = slow_.look(failure_time())) options_.print(*sentence);
}

// Returns the sentence, and writes the picture from which it follows to the log folder.
std::string StallWatch::explain_now() const {
  JobPicture job = picture_of_job(options_.log_folder, world_.size());
  const auto own = std::ranges::find(job.ranks, world_.rank(), &RankPicture::rank);
  if (own == job.ranks.end()) {
    job.ranks.push_back(picture_);
    std::ranges::sort(job.ranks, {}, &RankPicture::rank);
  } else {
    *own = picture_;
  }
  const std::string sentence = explain(job, interval_.count() / 2);
  try {
    write_atomically(options_.log_folder + "/" + kHangFile, to_json(job, sentence));
  } catch (const DataError& error) {
    log_warning() << error.what();  // the sentence is what matters
  }
  return sentence;
}

// Explains why this rank waits, unless that was done before.
void StallWatch::explain_once() {
  if (std::exchange(explained_, true)) return;
  try {
    options_.explained(explain_now());
  } catch (const std::exception& error) {
    log_warning() << "the wait cannot be explained: " << error.what();
  }
}

void StallWatch::report_if_due() {
  if (failure_time() - since_ < options_.warn_after.count()) return;
  Waits waits{
      .notes = read_wait_notes(options_.log_folder, world_.size()),
      .size = world_.size(),
      .now = failure_time(),
      .report_after = (options_.warn_after - 2 * interval_).count()};  // ranks that began together agree who reports
  for (int rank = 0; rank < world_.size(); ++rank) {
    std::error_code unknown;
    if (std::filesystem::exists(log_path(options_.log_folder, rank), unknown)) waits.visible.push_back(rank);
  }
  if (!stall_message(waits, world_.rank())) return;
  note_->reported = true;
  write_wait_note(options_.log_folder, *note_);
  const std::string sentence = explain_now();
  explained_ = true;
  options_.explained(sentence);
  options_.print(sentence);
}

bool StallWatch::has_failed(std::uint64_t number) const {
  const auto records = world_.recorder().records();
  const auto record = std::ranges::find(records, number, &FlightRecorder::Record::number);
  return record != records.end() && record->state == FlightRecorder::State::kFailed;
}

// Reports that an operation continues, unless it has failed: then its error is reported, with the explanation.
void StallWatch::finish_wait() {
  const auto note = std::exchange(note_, std::nullopt);
  const auto wait = std::exchange(wait_, std::nullopt);
  if (note) remove_wait_note(options_.log_folder, note->rank);
  if (!wait || has_failed(wait->oldest.number)) return;
  if (std::exchange(explained_, false)) options_.explained("");
  if (!note || !note->reported) return;
  const double seconds = failure_time() - note->since;
  options_.print("rank " + std::to_string(note->rank) +
                 format_text(" continues after %.0f s in ", std::floor(seconds)) + note->operation);
}

}  // namespace phalanx
