// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/checkpoint/manifest.h"

namespace phalanx {

/// Defines the checkpoints that are kept when another one has been written.
struct Retention {
  std::int64_t keep_last = 3;  // number of newest checkpoints
  std::int64_t keep_best = 0;  // number of checkpoints with the best test results, in addition
  std::string best_by{};       // name of the metric
  bool highest = true;         // if false, the lowest is the best
};

/// A checkpoint on disk.
struct Checkpoint {
  std::string path{};
  Manifest manifest{};
};

/// Reads the manifest of the checkpoint in folder `path`. Throws DataError.
Checkpoint read_checkpoint(const std::string& path);

/// Returns the time since a checkpoint was written, in seconds, or nullopt if the file system does not tell it.
std::optional<double> age_of(const Checkpoint& checkpoint);

/// Throws DataError unless every file matches the manifest.
void verify(const Checkpoint& checkpoint);

/// The checkpoints of a run. Any folder with a manifest is a checkpoint, whatever its name. Only one process may change
/// the folder at a time.
///
/// Names that end in ".tmp" are checkpoints that are being written or removed.
class CheckpointFolder {
 public:
  explicit CheckpointFolder(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  std::string final_path(std::int64_t step) const;      // step-00001234
  std::string temporary_path(std::int64_t step) const;  // step-00001234.tmp

  /// Called with the reason why a checkpoint cannot be used.
  using Refuse = std::function<void(const std::string& reason)>;

  /// Returns the checkpoints with a valid manifest, newest first, without checking their other files. Throws DataError
  /// if the folder exists but cannot be listed.
  std::vector<Checkpoint> list(const Refuse& refuse) const;

  /// Returns the newest intact checkpoint, or one with an empty path.
  Checkpoint newest_intact(const Refuse& refuse) const;

  /// Writes the manifest into temporary_path() of its step, whose other files must be complete on disk, gives the
  /// folder its final name, and removes checkpoints that `retention` does not keep. If the process is killed at any
  /// point, either all older checkpoints or the new one exist. Throws DataError, and may then be called again.
  void commit(const Manifest& manifest, const Retention& retention) const;

  /// Removes unfinished checkpoints of an earlier run.
  void remove_temporary() const;

  /// Renames all checkpoints of later steps to "set-aside-...", for a run that continues from an earlier step and will
  /// produce different ones. They are not found any more, but are kept.
  void set_aside_after(std::int64_t step) const;

 private:
  void prune(const Retention& retention) const;

  std::string path_;
};

}  // namespace phalanx
