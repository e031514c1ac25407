// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace phalanx {

/// The folder of dataset `name`, absolute: `configured` (a config's dataset.root) if it is not empty, else
/// ${PHALANX_DATA}/<name>, else data/<name>. Relative ones start at the folder from which the user called: bazel run
/// changes it and leaves the former one in BUILD_WORKING_DIRECTORY.
std::filesystem::path dataset_root(const std::string& configured, const std::string& name);

/// The files that a dataset consists of.
struct DatasetFiles {
  std::string dataset;
  std::vector<std::string> names;
  std::vector<std::string> suffixes = {""};  // each file may have any of them; the first one that exists is taken
  std::string how_to_get;                    // whole sentences for someone who has none of the files
};

/// The paths of all files in `root`, in the order of `names`. Throws one DataError that says which are missing, where
/// they were looked for, and how to get them.
std::vector<std::filesystem::path> find_files(const DatasetFiles& files, const std::filesystem::path& root);

/// Returns true if `root` has a file whose name matches `pattern`, where * is any part of a name.
bool has_file_like(const std::string& pattern, const std::filesystem::path& root);

/// The files in `root` whose names match one of `patterns`, where * is any part of a name, in the order of the patterns
/// and then of their names, each once. Throws DataError for a pattern that none matches; `key` of the config has it.
std::vector<std::filesystem::path> files_like(const std::vector<std::string>& patterns,
                                              const std::filesystem::path& root, const std::string& key);

}  // namespace phalanx
