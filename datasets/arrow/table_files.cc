// SPDX-License-Identifier: Apache-2.0
#include "datasets/arrow/table_files.h"

#include "datasets/root.h"
#include "framework/base/error.h"

namespace phalanx {

std::vector<std::filesystem::path> TableFiles::find(const std::string& dataset, const std::string& key,
                                                    const std::vector<std::string>& patterns) const {
  return files_like(patterns, dataset_root(root, dataset), "dataset." + key);
}

Splits TableFiles::splits(const std::string& dataset, const Make& make) const {
  const auto split = [&](const char* key, const std::vector<std::string>& patterns, bool training) {
    return make(find(dataset, key, patterns), training);
  };
  Splits made{.train = split("train", train, true), .validation = nullptr, .test = split("test", test, false)};
  if (!validation.empty()) made.validation = split("validation", validation, false);
  for (const auto& other : {made.test, made.validation}) {
    if (other && other->spec().inputs[0].shape != made.train->spec().inputs[0].shape) {
      throw DataError("dataset " + dataset + ": validation or test samples have another size than training samples");
    }
  }
  return made;
}

}  // namespace phalanx
