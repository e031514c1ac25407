// SPDX-License-Identifier: Apache-2.0
#include "engine/checkpoint/folder.h"

#include <fcntl.h>
#include <stdio.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <set>
#include <system_error>

#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/comm/launch/host_lease.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTemporary = ".tmp";
constexpr std::string_view kSetAside = "set-aside-";
constexpr std::string_view kStep = "step-";

std::string manifest_of(const std::string& path) { return path + "/" + kManifestName; }

// Returns false if this cannot be determined: later use of the path then fails with a message.
bool exists(const std::string& path) {
  std::error_code hidden;
  return fs::exists(path, hidden);
}

std::vector<std::string> folders_in(const std::string& path) {
  std::vector<std::string> names;
  std::error_code error, none;
  for (fs::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error)) {
    if (entry->is_directory(none)) names.push_back(entry->path().filename());
  }
  // With an incomplete list, a run could start from an older checkpoint, or from scratch.
  if (error && error != std::errc::no_such_file_or_directory && error != std::errc::not_a_directory) {
    throw DataError(path + ": cannot be listed: " + error.message());
  }
  std::ranges::sort(names);
  return names;
}

// Returns folders that are checkpoints or look like them, sorted by name.
std::vector<std::string> candidates_in(const std::string& path) {
  std::vector<std::string> found;
  for (const auto& name : folders_in(path)) {
    if (name.ends_with(kTemporary) || name.starts_with(kSetAside)) continue;
    const std::string candidate = path + "/" + name;
    if (name.starts_with(kStep) || exists(manifest_of(candidate))) found.push_back(candidate);
  }
  return found;
}

// A process whose lease is over ends before each change: others may have gone on without it, in the same folder.
void rename(const std::string& from, const std::string& to) {
  end_without_lease();
  std::error_code error;
  fs::rename(from, to, error);
  if (error) throw DataError(from + ": cannot be renamed to " + to + ": " + error.message());
}

void remove(const std::string& path) {
  end_without_lease();
  std::error_code error;
  fs::remove_all(path, error);
  if (error) throw DataError(path + ": cannot be removed: " + error.message());
}

// Exchanges the names atomically, so that one of the two always exists. Returns false if `other` does not exist, or if
// the file system cannot do this.
bool exchanged(const std::string& one, const std::string& other) {
  end_without_lease();
  return exists(other) && ::renameat2(AT_FDCWD, one.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE) == 0;
}

void set_aside(const std::string& path) {
  const std::string aside =
      fs::path(path).parent_path().string() + "/" + std::string(kSetAside) + fs::path(path).filename().string();
  std::string free = aside;
  for (int i = 2; exists(free); ++i) free = aside + "-" + std::to_string(i);
  rename(path, free);
}

// Returns the checkpoints whose test used exactly the weights in them, the best first.
std::vector<const Checkpoint*> by_metric(const std::vector<Checkpoint>& all, const Retention& retention) {
  std::vector<std::pair<double, const Checkpoint*>> found;
  for (const auto& checkpoint : all) {
    const auto& metrics = checkpoint.manifest.metrics;
    const auto metric = std::ranges::find(metrics, retention.best_by, &Metrics::value_type::first);
    if (checkpoint.manifest.tested_at != checkpoint.manifest.position.step || metric == metrics.end()) continue;
    if (std::isnan(metric->second)) continue;
    found.emplace_back(retention.highest ? -metric->second : metric->second, &checkpoint);
  }
  std::ranges::stable_sort(found, {}, [](const auto& one) { return one.first; });
  std::vector<const Checkpoint*> sorted;
  for (const auto& [order, checkpoint] : found) sorted.push_back(checkpoint);
  return sorted;
}

// Returns true if an earlier attempt to commit failed only after the checkpoint had its final name.
bool is_committed(const std::string& temporary, const std::string& final, const Manifest& manifest) {
  return !exists(temporary) && exists(manifest_of(final)) && read_file(manifest_of(final)) == to_text(manifest);
}

}  // namespace

Checkpoint read_checkpoint(const std::string& path) {
  const std::string manifest = manifest_of(path);
  return {path, parse_manifest(read_file(manifest), manifest)};
}

std::optional<double> age_of(const Checkpoint& checkpoint) {
  std::error_code error;
  const auto written = fs::last_write_time(checkpoint.path, error);
  if (error) return std::nullopt;
  return std::chrono::duration<double>(fs::file_time_type::clock::now() - written).count();
}

void verify(const Checkpoint& checkpoint) {
  for (const auto& file : checkpoint.manifest.files) check_file(checkpoint.path, file);
}

std::string CheckpointFolder::final_path(std::int64_t step) const {
  char name[40];
  std::snprintf(name, sizeof(name), "/step-%08lld", static_cast<long long>(step));
  return path_ + name;
}

std::string CheckpointFolder::temporary_path(std::int64_t step) const {
  return final_path(step) + std::string(kTemporary);
}

std::vector<Checkpoint> CheckpointFolder::list(const Refuse& refuse) const {
  std::vector<Checkpoint> found;
  for (const auto& path : candidates_in(path_)) {
    try {
      found.push_back(read_checkpoint(path));
    } catch (const DataError& error) {
      refuse(error.what());
    }
  }
  std::ranges::stable_sort(found, std::greater(), [](const Checkpoint& one) { return one.manifest.position.step; });
  return found;
}

Checkpoint CheckpointFolder::newest_intact(const Refuse& refuse) const {
  for (auto& checkpoint : list(refuse)) {
    try {
      verify(checkpoint);
      return checkpoint;
    } catch (const DataError& error) {
      refuse(error.what());
    }
  }
  return {};
}

void CheckpointFolder::commit(const Manifest& manifest, const Retention& retention) const {
  const auto step = manifest.position.step;
  const std::string temporary = temporary_path(step), final = final_path(step);
  end_without_lease();  // others may have gone on from here, and have a checkpoint of this step
  if (is_committed(temporary, final, manifest)) return prune(retention);
  write_synced(manifest_of(temporary), to_text(manifest));
  sync_folder(temporary);
  if (exchanged(temporary, final)) {
    sync_folder(path_);  // until the exchange is on disk, a power cut may leave the old names
    remove(temporary);   // the run's earlier checkpoint of this step
  } else {
    if (exists(final)) set_aside(final);
    rename(temporary, final);
  }
  sync_folder(path_);
  prune(retention);
}

void CheckpointFolder::prune(const Retention& retention) const {
  const auto all = list([](const std::string&) {});
  std::set<std::string> kept;
  for (std::size_t i = 0; i < all.size() && static_cast<std::int64_t>(i) < retention.keep_last; ++i) {
    kept.insert(all[i].path);
  }
  const auto best = by_metric(all, retention);
  for (std::size_t i = 0; i < best.size() && static_cast<std::int64_t>(i) < retention.keep_best; ++i) {
    kept.insert(best[i]->path);
  }
  for (const auto& checkpoint : all) {
    if (kept.contains(checkpoint.path)) continue;
    // If the process is killed during removal, no incomplete checkpoint has a checkpoint's name.
    rename(checkpoint.path, checkpoint.path + std::string(kTemporary));
    remove(checkpoint.path + std::string(kTemporary));
  }
}

void CheckpointFolder::remove_temporary() const {
  for (const auto& name : folders_in(path_)) {
    if (name.ends_with(kTemporary)) remove(path_ + "/" + name);
  }
}

void CheckpointFolder::set_aside_after(std::int64_t step) const {
  for (const auto& path : candidates_in(path_)) {
    bool later = true;  // unreadable checkpoints are set aside too
    try {
      later = read_checkpoint(path).manifest.position.step > step;
    } catch (const DataError&) {
    }
    if (later) set_aside(path);
  }
}

}  // namespace phalanx
