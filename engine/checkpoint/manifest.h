// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/meters/readings.h"
#include "framework/base/storage/disk.h"

namespace phalanx {

/// Where a run stands: what the next step is.
struct Position {
  std::int64_t step = 0;   // updates done
  std::int64_t epoch = 0;  // of the next step
  std::int64_t batch = 0;  // of that epoch; its number of batches: the epoch's end, with its test, is still to come

  bool operator==(const Position&) const = default;
};

/// What a checkpoint is, in its manifest.json: written last, so that a folder with a manifest is a whole checkpoint.
struct Manifest {
  using Words = std::vector<std::pair<std::string, std::string>>;

  Position position;
  int ranks = 0;                // that wrote it
  std::int64_t updates = 0;     // the optimizer's
  Words identity{};             // of the run: with others it cannot go on
  std::string strategy{};       // by which replicas agreed, with its fields and buckets
  Readings readings{};          // of the last test
  std::int64_t tested_at = -1;  // step of that; -1: no test yet
  std::string config{};         // YAML, for people: a checkpoint may be copied away from its run folder
  Words provenance{};           // for people too
  std::vector<FileRecord> files{};
};

inline constexpr const char* kManifestName = "manifest.json";

/// JSON, the last line but one of which has the CRC-32C of all before it.
std::string to_text(const Manifest& manifest);

/// Reads it back. Throws DataError naming `path` where one bit is not as it was written.
Manifest parse_manifest(const std::string& text, const std::string& path);

}  // namespace phalanx
