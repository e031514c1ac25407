// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/metrics.h"
#include "framework/base/storage/disk.h"

namespace phalanx {

/// The position of a run: its next step.
struct Position {
  std::int64_t step = 0;   // completed updates
  std::int64_t epoch = 0;  // of the next step
  std::int64_t batch =
      0;  // index within that epoch; the number of batches if only the test at the end of the epoch is left

  /// The samples of that epoch that were taken before, if the run has had batches of another size than
  /// train.global_batch_size (faults.batch: per_rank). -1: `batch` batches of that size.
  std::int64_t samples = -1;

  /// Returns true if batches of the epoch were taken.
  bool within_epoch() const { return batch > 0 || samples > 0; }

  bool operator==(const Position&) const = default;
};

/// The description of a checkpoint in its manifest.json. It is written last, so a folder with a manifest is complete.
struct Manifest {
  using Strings = std::vector<std::pair<std::string, std::string>>;

  Position position;
  int ranks = 0;                // number of ranks that wrote it
  std::int64_t updates = 0;     // the optimizer's
  Strings identity{};           // of the run; a run with a different identity cannot resume from it
  std::string strategy{};       // with its fields and buckets
  Metrics metrics{};            // of the last test
  std::int64_t tested_at = -1;  // step of the last test; -1 if there was none
  std::string config{};         // YAML, for people: a checkpoint may be copied out of its run folder
  Strings provenance{};         // for people
  std::vector<FileRecord> files{};
};

inline constexpr const char* kManifestName = "manifest.json";

/// Returns JSON, whose last line but one has the CRC-32C of everything before it.
std::string to_text(const Manifest& manifest);

/// Parses the result of to_text(). Throws DataError naming `path` if a single bit has changed.
Manifest parse_manifest(const std::string& text, const std::string& path);

}  // namespace phalanx
