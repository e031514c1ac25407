// SPDX-License-Identifier: Apache-2.0
#include "launch/stall/stall_watch.h"

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <exception>
#include <filesystem>
#include <mutex>
#include <system_error>
#include <utility>

#include "framework/base/text.h"
#include "launch/failure/failure.h"
#include "launch/failure/failure_report.h"
#include "launch/stall/stall.h"

namespace phalanx {
namespace {

constexpr Seconds kMaxCheckInterval{1};

std::string name_of(const FlightRecorder::Record& record) {
  return std::string(to_string(record.call.op)) + " #" + std::to_string(record.sequence) + " of " + record.group;
}

bool is_message(const FlightRecorder::Record& record) {
  return record.call.op == Op::kSend || record.call.op == Op::kRecv;
}

}  // namespace

bool StallWatch::Running::same_as(const Running& other) const {
  return oldest.number == other.oldest.number && newest_running == other.newest_running &&
         newest_launched == other.newest_launched;
}

StallWatch::StallWatch(const Communicator& world, Options options)
    : world_(world), options_(std::move(options)), interval_(std::min(kMaxCheckInterval, options_.warn_after / 4)) {
  remove_wait_note(options_.log_folder, world_.rank());  // left by a run that was killed
  thread_ = std::jthread([this](const std::stop_token& stop) { watch(stop); });
}

StallWatch::~StallWatch() {
  thread_.request_stop();
  thread_.join();
  if (note_) remove_wait_note(options_.log_folder, world_.rank());
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

void StallWatch::check_progress() {
  auto now_running = running();
  if (!now_running || !wait_ || !wait_->same_as(*now_running)) {
    finish_wait();
    wait_ = std::move(now_running);
    since_ = failure_time();
    return;
  }
  if (!note_ && failure_time() - since_ >= interval_.count()) {
    const auto& record = wait_->oldest;
    const bool to_one = is_message(record) && record.group == world_.name();
    note_ = {.rank = world_.rank(),
             .operation = name_of(record),
             .peer = to_one ? record.call.peer : -1,
             .since = since_,
             .reported = false};
    write_wait_note(options_.log_folder, *note_);
  }
  if (note_ && !note_->reported) report_if_due();
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
  const auto text = stall_message(waits, world_.rank());
  if (!text) return;
  note_->reported = true;
  write_wait_note(options_.log_folder, *note_);
  options_.print(*text);
}

// Reports that an operation continues, unless it has failed: then its error is reported.
void StallWatch::finish_wait() {
  const auto note = std::exchange(note_, std::nullopt);
  const auto wait = std::exchange(wait_, std::nullopt);
  if (!note) return;
  remove_wait_note(options_.log_folder, note->rank);
  if (!note->reported) return;
  const auto records = world_.recorder().records();
  const auto it = std::ranges::find(records, wait->oldest.number, &FlightRecorder::Record::number);
  if (it != records.end() && it->state == FlightRecorder::State::kFailed) return;
  const double seconds = failure_time() - note->since;
  options_.print("rank " + std::to_string(note->rank) +
                 format_text(" continues after %.0f s in ", std::floor(seconds)) + note->operation);
}

}  // namespace phalanx
