// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace phalanx {

/// Returns the absolute path of the folder of dataset `name`: `configured` (a config's dataset.root) if it is not
/// empty, else ${PHALANX_DATA}/<name>, else data/<name>. Relative paths start at the user's current folder: bazel run
/// changes the current folder, but keeps the user's one in BUILD_WORKING_DIRECTORY.
std::filesystem::path dataset_root(const std::string& configured, const std::string& name);

/// The files that a dataset consists of.
struct DatasetFiles {
  std::string dataset;
  std::vector<std::string> names;
  std::vector<std::string> suffixes = {""};  // a file may have any of these; the first one that exists is used
  std::string how_to_get;                    // full sentences for a user who has none of the files
};

/// A sentence for `how_to_get` of datasets whose files have fixed names.
inline const std::string kFromElsewhere =
    "To use them from elsewhere: set dataset.root to their folder, or PHALANX_DATA to the folder above it.";

/// Returns the paths of all files in `root`, in the order of `names`. Throws one DataError that lists the missing
/// files, where they were looked for, and how to get them.
std::vector<std::filesystem::path> find_files(const DatasetFiles& files, const std::filesystem::path& root);

/// Returns true if `root` has a file whose name matches `pattern`, where * matches any part of a name.
bool has_file_like(const std::string& pattern, const std::filesystem::path& root);

/// Returns the files in `root` whose names match one of `patterns`, where * matches any part of a name, each once. They
/// are ordered by pattern, then by name. Throws DataError if no file matches a pattern; the message names `key`, the
/// config key that has the patterns.
std::vector<std::filesystem::path> files_like(const std::vector<std::string>& patterns,
                                              const std::filesystem::path& root, const std::string& key);

}  // namespace phalanx
