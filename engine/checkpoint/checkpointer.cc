// SPDX-License-Identifier: Apache-2.0
#include "engine/checkpoint/checkpointer.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <string>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/file_identity.h"
#include "framework/base/log.h"
#include "framework/base/storage/crc32c.h"
#include "framework/base/text.h"
#include "framework/comm/launch/host_lease.h"
#include "framework/comm/operations/measured_inputs.h"
#include "framework/comm/texts.h"

namespace phalanx {
namespace {

constexpr Seconds kSlice{0.01};     // of waiting, between two exchanges of statuses
constexpr int kMostDoublings = 10;  // of the deadline, with each attempt
constexpr Seconds kLastMoment{2};   // for a thread that is writing when the run ends
constexpr const char* kGoesOn = "; it is tried again, and training goes on";

FileRecord named(std::string name, FileRecord record) {
  record.name = std::move(name);
  return record;
}

// Returns the folder that contains the folder of checkpoints.
std::string run_folder(const CheckpointFolder& folder) {
  const auto parent = std::filesystem::path(folder.path()).parent_path().string();
  return parent.empty() ? "." : parent;
}

// Otherwise the folder would be created again, with nothing in it but a checkpoint.
void require_same(const std::string& folder, const std::optional<FileIdentity>& at_start) {
  if (!at_start || FileIdentity::of(folder) == at_start) return;
  throw DataError(folder + ": was removed or renamed during the run");
}

// A process whose lease is over ends before it changes anything in the folder of a checkpoint: others may have gone on
// without it, and write a checkpoint of the same step.
void rename_file(const std::string& from, const std::string& to) {
  end_without_lease();
  std::error_code error;
  std::filesystem::rename(from, to, error);
  if (error) throw DataError(from + ": cannot be renamed: " + error.message());
}

void make_folder(const std::string& path) {
  end_without_lease();
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) throw DataError(path + ": cannot be created: " + error.message());
}

SnapshotChecksums checksums_of(const Snapshot& snapshot) {
  return {crc32c(snapshot.weights.data(), snapshot.weights.size()),
          crc32c(snapshot.state.data(), snapshot.state.size())};
}

// Throws an Error that is final, since no further attempt could write what was there.
void require_unchanged(const std::optional<SnapshotChecksums>& expected, const SnapshotChecksums& written, int rank) {
  if (!expected || (expected->weights == written.weights && expected->state == written.state)) return;
  throw Error("the copy of " + std::string(expected->weights == written.weights ? "the state" : "the weights") +
              " in the memory of rank " + std::to_string(rank) +
              " has changed before it was written: its checksum does not match; the memory of this host may be faulty");
}

std::atomic<const FlightRecorder*> damaged_snapshot_of{nullptr};

void damage_if_asked(Snapshot& snapshot, const FlightRecorder& rank) {
  const FlightRecorder* expected = &rank;
  if (!damaged_snapshot_of.compare_exchange_strong(expected, nullptr)) return;
  if (!snapshot.state.empty()) snapshot.state.back() ^= 4;
}

}  // namespace

void damage_next_snapshot(const FlightRecorder& rank) { damaged_snapshot_of = &rank; }

Checkpointer::Checkpointer(CheckpointFolder folder, Retention retention, CommunicatorPtr world, const RunState& state,
                           Patience patience, bool checksums)
    : folder_(std::move(folder)),
      retention_(std::move(retention)),
      patience_(patience),
      checksums_(checksums),
      run_folder_(FileIdentity::of(run_folder(folder_))),
      world_(std::move(world)),
      state_(state),
      plan_(make_plan(state, *world_)),
      statuses_(world_) {}

Checkpointer::~Checkpointer() {
  for (auto* task : {&writing_, &commit_}) {
    if (!*task) continue;
    (*task)->give_up();
    (*task)->wait(kLastMoment);
  }
}

void Checkpointer::save(Manifest manifest, bool replicas_equal) {
  if (busy() && !behind_) wait_for(patience_.wait, patience_.wait);
  SharePtr share = copy(std::move(manifest), replicas_equal);
  if (!busy()) return begin(std::move(share));
  if (!behind_ && !told_) {
    notice_ = "Warning: the disk is slow: the " + name_of_current() +
              format_text(
                  " is still being written after %g s. Training goes on, and the newest checkpoint waits in "
                  "memory",
                  patience_.wait.count());
  }
  behind_ = true;
  waiting_ = std::move(share);
}

Checkpointer::SharePtr Checkpointer::copy(Manifest manifest, bool replicas_equal) {
  SharePtr share = waiting_ ? std::exchange(waiting_, nullptr) : std::exchange(spare_, nullptr);
  if (share == nullptr) share = std::make_shared<Share>();
  take_snapshot(state_, plan_, replicas_equal, share->snapshot);
  share->expected.reset();
  if (checksums_) share->expected = checksums_of(share->snapshot);
  damage_if_asked(share->snapshot, world_->recorder());
  share->manifest = std::move(manifest);
  share->manifest.ranks = plan_.ranks;
  return share;
}

void Checkpointer::begin(SharePtr share) {
  current_ = std::move(share);
  reason_.clear();
  trying_again_ = false;
  mine_ = {};
  late_.clear();
  attempts_ = 0;
  write();
}

// Starts to write this rank's files. Later attempts have names of their own, which they change at their end.
void Checkpointer::write() {
  if (attempt_) attempt_->replaced = true;
  attempt_ = std::make_shared<Attempt>();
  const std::string suffix = attempts_++ == 0 ? "" : ".attempt" + std::to_string(attempts_);
  task_started_ = Clock::now();
  writing_ = std::make_unique<RetriedTask>([share = current_, attempt = attempt_, suffix, run = run_folder(folder_),
                                            at_start = run_folder_, rank = plan_.rank, ranks = plan_.ranks,
                                            path = folder_.temporary_path(current_->manifest.position.step)] {
    const auto write_file = [&](const std::string& name, const std::string& text) {
      if (attempt->replaced) throw DataError(path + ": is written by a later attempt");
      end_without_lease();
      FileRecord record = write_synced(path + "/" + name + suffix, text);
      if (!suffix.empty() && !attempt->replaced) rename_file(path + "/" + name + suffix, path + "/" + name);
      return record;
    };
    require_same(run, at_start);
    make_folder(path);
    attempt->weights = write_file(weights_file(rank, ranks), share->snapshot.weights);
    attempt->state = write_file(state_file(rank, ranks), share->snapshot.state);
    require_unchanged(share->expected, {attempt->weights.crc, attempt->state.crc}, rank);
  });
  if (patience_.retry.count() <= 0) writing_->give_up();
}

// Writes the files again if the thread that writes them has not returned in time. Rank 0's commit is only reported,
// because two threads must not rename the folder.
void Checkpointer::check_deadline() {
  const RetriedTask* const task = writing_ ? writing_.get() : commit_.get();
  const Seconds deadline = patience_.deadline * (1 << std::min(attempts_ - 1, kMostDoublings));
  const bool passed = deadline.count() > 0 && Clock::now() - task_started_ >= deadline;
  if (task == nullptr || !passed || task->ended()) return;
  if (!writing_ && !late_.empty()) return;
  late_ = format_text("it has not been written within %g s (checkpoint.deadline)", deadline.count());
  log_warning() << "the " << name_of_current() << ": " << late_ << (writing_ ? "; it is written again" : "");
  if (writing_) write();
}

void Checkpointer::advance() {
  if (!busy()) return;
  conclude();
  if (!busy()) return;
  look();
  statuses_.launch(mine_);
}

bool Checkpointer::wait_for(Seconds wait, Seconds retry) {
  const auto start = Clock::now();
  ++waits_;
  impatient_ = false;
  while (busy() && !impatient_) {
    if (writing_) writing_->wait(kSlice);
    if (commit_) commit_->wait(kSlice);
    const bool over = Clock::now() - start >= (trying_again_ ? retry : wait);
    mine_.impatient_in = plan_.rank == 0 && over ? waits_ : 0;
    advance();
  }
  return !busy();  // it may have ended in the same moment in which rank 0 stopped waiting
}

void Checkpointer::settle() {
  if (busy() && !wait_for(patience_.hang, patience_.retry)) abandon_all();
}

void Checkpointer::look() {
  check_deadline();
  try {
    if (writing_ && writing_->ended()) {
      const auto task = std::move(writing_);
      task->check();
      mine_.weights = attempt_->weights;
      mine_.state = attempt_->state;
      late_.clear();
      mine_.stage = WriteStatus::kWritten;
    }
    if (commit_ && commit_->ended()) {
      const auto task = std::move(commit_);
      task->check();
      mine_.stage = WriteStatus::kCommitted;
      late_.clear();
    }
  } catch (const std::exception& error) {
    mine_.stage = WriteStatus::kFailed;
    reason_ = error.what();
    log_error() << "the " << name_of_current() << " is abandoned: " << reason_;
  }
  mine_.troubled = !own_trouble().empty();
}

std::string Checkpointer::own_trouble() const {
  const std::string trouble = writing_ ? writing_->trouble() : commit_ ? commit_->trouble() : "";
  return trouble.empty() ? late_ : trouble;
}

void Checkpointer::conclude() {
  statuses_.finish();
  bool writing = false, failed = false, written = true, troubled = false;
  for (int rank = 0; rank < plan_.ranks; ++rank) {
    const WriteStatus status = statuses_.of(rank);
    writing |= status.stage == WriteStatus::kWriting;
    failed |= status.stage == WriteStatus::kFailed;
    written &= status.stage == WriteStatus::kWritten;
    troubled |= status.troubled;
  }
  const WriteStatus first = statuses_.of(0);
  impatient_ = first.impatient_in == waits_;
  if (first.stage == WriteStatus::kCommitted) return finish(true);
  if (failed && !writing) return finish(false);
  trying_again_ = troubled;
  if (troubled && !told_) note_trouble();
  if (failed || (troubled && waiting_ != nullptr)) give_up();
  if (written && plan_.rank == 0 && !commit_ && mine_.stage == WriteStatus::kWritten) begin_commit();
}

// All ranks learn of trouble at the same time, so this can be collective.
void Checkpointer::note_trouble() {
  told_ = true;
  notice_ = "Warning: the " + name_of_current() + " cannot be written: " + first_of(own_trouble()) + kGoesOn;
}

void Checkpointer::give_up() {
  if (writing_) writing_->give_up();
  if (commit_) commit_->give_up();
}

void Checkpointer::begin_commit() {
  auto& files = current_->manifest.files;
  files.clear();
  for (int rank = 0; rank < plan_.ranks; ++rank) {
    const WriteStatus status = statuses_.of(rank);
    files.push_back(named(weights_file(rank, plan_.ranks), status.weights));
    files.push_back(named(state_file(rank, plan_.ranks), status.state));
  }
  task_started_ = Clock::now();
  commit_ = std::make_unique<RetriedTask>(
      [share = current_, folder = folder_, retention = retention_] { folder.commit(share->manifest, retention); });
  if (patience_.retry.count() <= 0) commit_->give_up();
}

// Collective.
std::string Checkpointer::first_of(const std::string& own) const {
  const MeasuredInputs measured;  // of the disk
  for (const auto& reason : all_gather_text(own, *world_)) {
    if (!reason.empty()) return reason;
  }
  return "no rank gave a reason";
}

void Checkpointer::finish(bool complete) {
  const std::string name = name_of_current(), temporary = folder_.temporary_path(current_->manifest.position.step);
  complete ? ++written_ : ++failed_;
  failure_ = complete ? "" : first_of(reason_);
  if (complete && (told_ || behind_)) notice_ = "Checkpoints are written again: the " + name + " is complete";
  if (!complete && !told_) notice_ = "A checkpoint was abandoned: " + failure_;
  if (complete) told_ = behind_ = false;
  if (!complete && plan_.rank == 0) {
    if (reason_.empty()) log_error() << "the " << name << " is abandoned: " << failure_;
    end_without_lease();
    std::error_code left_to_the_next_run;
    std::filesystem::remove_all(temporary, left_to_the_next_run);
  }
  if (current_.use_count() == 1) spare_ = current_;  // else the thread has not let go of it yet
  current_.reset();
  statuses_.clear();
  if (waiting_ != nullptr) begin(std::move(waiting_));
}

// All ranks stop waiting at the same time, so this can be collective.
void Checkpointer::abandon_all() {
  statuses_.finish();
  if (mine_.stage == WriteStatus::kWriting || commit_ != nullptr) {
    reason_ = own_trouble();
    if (reason_.empty()) reason_ = format_text("the disk has not taken it within %g s", patience_.hang.count());
  }
  give_up();
  writing_.reset();
  commit_.reset();
  waiting_.reset();
  finish(false);
  notice_ = "A checkpoint was abandoned: " + failure_;
}

std::string Checkpointer::take_notice() { return std::exchange(notice_, ""); }

std::string Checkpointer::name_of_current() const {
  return "checkpoint of step " + std::to_string(current_->manifest.position.step);
}

}  // namespace phalanx
