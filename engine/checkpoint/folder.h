// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/checkpoint/manifest.h"

namespace phalanx {

/// What stays when another checkpoint has been written.
struct Retention {
  std::int64_t keep_last = 3;  // the newest
  std::int64_t keep_best = 0;  // those whose test was best, besides
  std::string best_by{};       // reading
  bool highest = true;         // is the best
};

/// A checkpoint as it lies on disk.
struct Checkpoint {
  std::string path{};
  Manifest manifest{};
};

/// Reads the manifest of the checkpoint in folder `path`. Throws DataError.
Checkpoint read_checkpoint(const std::string& path);

/// Throws DataError unless every file is what the manifest says.
void verify(const Checkpoint& checkpoint);

/// The checkpoints of a run. A checkpoint is a folder with a manifest, whatever its name is. One process at a time
/// changes the folder.
///
/// Names that end in ".tmp" are checkpoints in the making, or on the way out.
class CheckpointFolder {
 public:
  explicit CheckpointFolder(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  std::string final_path(std::int64_t step) const;      // step-00001234
  std::string temporary_path(std::int64_t step) const;  // step-00001234.tmp

  /// Told why something is no checkpoint that can be used.
  using Refuse = std::function<void(const std::string& reason)>;

  /// Returns the checkpoints that have a good manifest, the newest first, without a look at their other files. Throws
  /// DataError if the folder is there and cannot be listed.
  std::vector<Checkpoint> list(const Refuse& refuse) const;

  /// The newest checkpoint that is whole, or one without a path.
  Checkpoint newest_good(const Refuse& refuse) const;

  /// Writes the manifest into temporary_path() of its step, whose other files are complete on disk, gives it its final
  /// name, and removes what `retention` does not keep. Killed anywhere, all older checkpoints or the new one are there.
  /// Throws DataError.
  void commit(const Manifest& manifest, const Retention& retention) const;

  /// Removes what an earlier run has left half-made.
  void remove_temporary() const;

  /// Renames all checkpoints of later steps to "set-aside-...": the run goes on from an earlier one, and its future
  /// will be another. They are not found any more, and stay.
  void set_aside_after(std::int64_t step) const;

 private:
  void prune(const Retention& retention) const;

  std::string path_;
};

}  // namespace phalanx
