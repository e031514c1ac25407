// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace phalanx::history {

/// Who made a file: the provenance that a checkpoint or a run folder records.
struct Origin {
  std::string record;  // the file that says so: manifest.json of a checkpoint, or summary.json of a run
  std::string run;     // folder of the run; empty for a checkpoint that was copied out of its run
  std::vector<std::pair<std::string, std::string>> facts{};  // in the order in which people read them
};

/// Returns the origin of a checkpoint, a run folder, or a file in one of them, such as final weights. Records of older
/// versions have fewer facts. Returns nullopt if there is no record in the folder or the folders above it. Throws
/// DataError if the file does not exist, if the record is damaged, or if a file of a checkpoint differs from its
/// checksum in the manifest, so that something else has changed it.
std::optional<Origin> find_origin(const std::string& path);

/// Returns a file below `folder` with the same bytes as `path`, for files that were copied out of a run, or nullopt.
/// Reads only files of the same size.
std::optional<std::string> find_copy(const std::string& path, const std::string& folder);

}  // namespace phalanx::history
