// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "datasets/dataset.h"
#include "framework/base/config/visitor.h"

namespace phalanx {

/// Where the tables of each split are: fields of all datasets of tables.
struct TableFiles {
  std::string root;
  std::vector<std::string> train{"train-*.parquet"};
  std::vector<std::string> validation;
  std::vector<std::string> test{"test-*.parquet"};

  template <class V>
  void visit(V& v) {
    v("root", root, "folder of the files; empty: that of the dataset's name in ${PHALANX_DATA}, else in data");
    v("train", train, "files to train on, of Parquet or Arrow, * being any part of a name");
    v("validation", validation, "files to validate on; empty: none");
    v("test", test, "files to test on");
  }

  /// Returns the files that fit the patterns, which are the value of `key` in the config of `dataset`. Throws DataError
  /// for a pattern that no file fits, with the key.
  std::vector<std::filesystem::path> find(const std::string& dataset, const std::string& key,
                                          const std::vector<std::string>& patterns) const;

  using Make =
      std::function<std::shared_ptr<const Dataset>(const std::vector<std::filesystem::path>& files, bool training)>;

  /// Returns what `make` makes of the files of each split. Throws as find(), and DataError if the samples to test on
  /// have another shape than the samples to train on.
  Splits splits(const std::string& dataset, const Make& make) const;
};

}  // namespace phalanx
