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

/// The config fields with the files of each split, which all table datasets have.
struct TableFiles {
  std::string root;
  std::vector<std::string> train{"train-*.parquet"};
  std::vector<std::string> validation;
  std::vector<std::string> test{"test-*.parquet"};

  template <class V>
  void visit(V& v) {
    v("root", root, "folder of the files; empty: the one with the dataset's name in ${PHALANX_DATA}, else in data");
    v("train", train, "Parquet or Arrow files to train on; * stands for any part of a name");
    v("validation", validation, "files to validate on; empty: none");
    v("test", test, "files to test on");
  }

  /// Returns the files that match the patterns. `key` is the config key of `dataset` that has the patterns; DataError
  /// for a pattern that no file matches names it.
  std::vector<std::filesystem::path> find(const std::string& dataset, const std::string& key,
                                          const std::vector<std::string>& patterns) const;

  using Make =
      std::function<std::shared_ptr<const Dataset>(const std::vector<std::filesystem::path>& files, bool training)>;

  /// Calls `make` for the files of each split and returns the resulting datasets. Throws the errors of find(), and
  /// DataError if test samples have another shape than training samples.
  Splits splits(const std::string& dataset, const Make& make) const;
};

}  // namespace phalanx
