#include "datasets/arrow/table_files.h"

#include "datasets/root.h"
#include "framework/base/error.h"

namespace phalanx {

Splits TableFiles::splits(const std::string& dataset, const Make& make) const {
  const auto folder = dataset_root(root, dataset);
  const auto split = [&](const char* key, const std::vector<std::string>& patterns, bool training) {
    return make(files_like(patterns, folder, std::string("dataset.") + key), training);
  };
  Splits made{.train = split("train", train, true), .validation = nullptr, .test = split("test", test, false)};
  if (!validation.empty()) made.validation = split("validation", validation, false);
  for (const auto& other : {made.test, made.validation}) {
    if (other && other->spec().inputs[0].shape != made.train->spec().inputs[0].shape) {
      throw DataError("dataset " + dataset + ": samples to test on have another size than those to train on");
    }
  }
  return made;
}

}  // namespace phalanx
