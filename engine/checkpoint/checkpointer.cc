// SPDX-License-Identifier: Apache-2.0
#include "engine/checkpoint/checkpointer.h"

#include <ATen/ops/zeros.h>

#include <chrono>
#include <filesystem>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/file_identity.h"
#include "framework/base/log.h"
#include "framework/comm/texts.h"

namespace phalanx {
namespace {

constexpr std::int64_t kStatusColumns = 5;

template <class T>
bool ready(const std::future<T>& future) {
  return future.valid() && future.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

FileRecord record(const std::string& name, const std::int64_t* bytes_and_crc) {
  return {name, static_cast<std::uint64_t>(bytes_and_crc[0]), static_cast<std::uint32_t>(bytes_and_crc[1])};
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

void make_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) throw DataError(path + ": cannot be created: " + error.message());
}

}  // namespace

Checkpointer::Checkpointer(CheckpointFolder folder, Retention retention, CommunicatorPtr world, const RunState& state)
    : folder_(std::move(folder)),
      retention_(std::move(retention)),
      run_folder_(FileIdentity::of(run_folder(folder_))),
      world_(std::move(world)),
      state_(state),
      plan_(make_plan(state, *world_)),
      mine_(at::zeros({kStatusColumns}, at::kLong)),
      all_(at::zeros({kStatusColumns * world_->size()}, at::kLong)) {}

Checkpointer::~Checkpointer() {
  if (writing_.valid()) writing_.wait();
  if (commit_.valid()) commit_.wait();
}

void Checkpointer::save(Manifest manifest, bool replicas_equal) {
  settle();
  take_snapshot(state_, plan_, replicas_equal, snapshot_);
  manifest_ = std::move(manifest);
  manifest_.ranks = plan_.ranks;
  busy_ = true;
  reason_.clear();
  mine_.zero_();
  writing_ = std::async(std::launch::async, [this, path = folder_.temporary_path(manifest_.position.step)] {
    require_same(run_folder(folder_), run_folder_);
    make_folder(path);
    return Files{write_synced(path + "/" + weights_file(plan_.rank, plan_.ranks), snapshot_.weights),
                 write_synced(path + "/" + state_file(plan_.rank, plan_.ranks), snapshot_.state)};
  });
}

void Checkpointer::advance() {
  if (!busy_) return;
  if (conclude()) return;
  look();
  exchange_status();
}

void Checkpointer::settle() {
  while (busy_) {
    if (writing_.valid()) writing_.wait();
    if (commit_.valid()) commit_.wait();
    advance();
  }
}

void Checkpointer::look() {
  auto* mine = mine_.data_ptr<std::int64_t>();
  try {
    if (ready(writing_)) {
      const Files files = writing_.get();
      mine[0] = kWritten;
      mine[1] = static_cast<std::int64_t>(files.weights.bytes);
      mine[2] = files.weights.crc;
      mine[3] = static_cast<std::int64_t>(files.state.bytes);
      mine[4] = files.state.crc;
    }
    if (ready(commit_)) {
      commit_.get();
      mine[0] = kCommitted;
    }
  } catch (const std::exception& error) {
    mine[0] = kFailed;
    reason_ = error.what();
    log_error() << "the checkpoint of step " << manifest_.position.step << " is abandoned: " << reason_;
  }
}

void Checkpointer::exchange_status() { exchange_ = world_->all_gather(all_, mine_); }

std::int64_t Checkpointer::status_of(int rank) const { return all_.data_ptr<std::int64_t>()[rank * kStatusColumns]; }

bool Checkpointer::conclude() {
  exchange_.wait();
  exchange_ = {};
  bool writing = false, failed = false, written = true;
  for (int rank = 0; rank < plan_.ranks; ++rank) {
    writing |= status_of(rank) == kWriting;
    failed |= status_of(rank) == kFailed;
    written &= status_of(rank) == kWritten;
  }
  if (status_of(0) == kCommitted) return finish(true), true;
  if (failed && !writing) return finish(false), true;
  if (written && plan_.rank == 0 && !commit_.valid() && mine_.data_ptr<std::int64_t>()[0] == kWritten) begin_commit();
  return false;
}

void Checkpointer::begin_commit() {
  manifest_.files.clear();
  for (int rank = 0; rank < plan_.ranks; ++rank) {
    const auto* row = all_.data_ptr<std::int64_t>() + rank * kStatusColumns;
    manifest_.files.push_back(record(weights_file(rank, plan_.ranks), row + 1));
    manifest_.files.push_back(record(state_file(rank, plan_.ranks), row + 3));
  }
  commit_ = std::async(std::launch::async, [this] { folder_.commit(manifest_, retention_); });
}

// All ranks learn of a failed checkpoint at the same time, so this can be collective.
std::string Checkpointer::first_reason() const {
  for (const auto& reason : all_gather_text(reason_, *world_)) {
    if (!reason.empty()) return reason;
  }
  return "no rank gave a reason";
}

void Checkpointer::finish(bool complete) {
  busy_ = false;
  all_.zero_();
  complete ? ++written_ : ++failed_;
  failure_.clear();
  if (complete) return;
  failure_ = first_reason();
  if (plan_.rank != 0) return;
  if (reason_.empty()) {
    log_error() << "the checkpoint of step " << manifest_.position.step << " is abandoned: " << failure_;
  }
  std::error_code left_to_the_next_run;
  std::filesystem::remove_all(folder_.temporary_path(manifest_.position.step), left_to_the_next_run);
}

}  // namespace phalanx
