// SPDX-License-Identifier: Apache-2.0
// NumPy arrays. Each split has samples [n, ...] and targets [n], in files of one array (.npy) or of several arrays
// (.npz). Bytes are treated as images and scaled to [0, 1].
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "datasets/dataset.h"
#include "datasets/files/npy_file.h"
#include "datasets/root.h"
#include "datasets/tables/dense_samples.h"
#include "datasets/tables/finite_float.h"
#include "framework/base/config/visitor.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

struct NumpyConfig {
  std::string root;
  std::string train_inputs = "train_inputs.npy";
  std::string train_targets = "train_targets.npy";
  std::string test_inputs = "test_inputs.npy";
  std::string test_targets = "test_targets.npy";
  std::int64_t classes = 0;

  template <class V>
  void visit(V& v) {
    v("root", root, "folder of the files; empty: ${PHALANX_DATA}/numpy, else data/numpy");
    v("train_inputs", train_inputs, "samples to train on, as file.npy or file.npz:array");
    v("train_targets", train_targets, "what to predict for each of them");
    v("test_inputs", test_inputs, "samples to test on");
    v("test_targets", test_targets, "what to predict for each of them");
    v("classes", classes, "number of classes, if targets are one of 0 to classes - 1; 0: targets are numbers",
      config::at_least(0));
  }
};

struct Found {
  std::string place;
  NpyArray array;
};

Found read(const fs::path& root, const std::string& where) {
  std::error_code unreadable;
  const auto colon = fs::exists(root / where, unreadable) ? std::string::npos : where.rfind(':');
  const auto name = where.substr(0, colon);
  const auto path = find_files({.dataset = "numpy",
                                .names = {name},
                                .how_to_get = "Files as numpy.save and numpy.savez write them; to use others, set "
                                              "dataset.root and dataset.train_inputs to dataset.test_targets."},
                               root)
                        .front();
  return {path.string() + where.substr(name.size()),
          read_npy(path, colon == std::string::npos ? "" : where.substr(colon + 1))};
}

DenseSamples samples_of(const Found& inputs, const Found& targets, std::int64_t classes) {
  const auto& shape = inputs.array.shape();
  const auto samples = shape.size() < 2 ? 0 : shape[0];
  if (inputs.array.size() == 0 || samples == 0) {
    throw DataError(inputs.place +
                    ": samples must be an array of at least two dimensions, the first of which counts samples");
  }
  if (targets.array.size() != samples) {
    throw DataError(targets.place + ": has " + std::to_string(targets.array.size()) + " targets, but " + inputs.place +
                    " has " + std::to_string(samples) + " samples");
  }
  DenseSamples table{.shape = {shape.begin() + 1, shape.end()}};
  const double scale = inputs.array.is_of_bytes() ? 255 : 1;
  table.values.reserve(static_cast<std::size_t>(inputs.array.size()));
  const auto width = inputs.array.size() / samples;
  for (std::int64_t i = 0; i < inputs.array.size(); ++i) {
    table.values.push_back(
        finite_float(inputs.array[i] / scale, [&] { return inputs.place + ": sample " + std::to_string(i / width); }));
  }
  for (std::int64_t i = 0; i < samples; ++i) {
    const auto value = targets.array[i];
    if (classes == 0) {
      table.numbers.push_back(finite_float(value, [&] { return targets.place + ": target " + std::to_string(i); }));
      continue;
    }
    if (!(value >= 0 && value < static_cast<double>(classes)) || value != std::floor(value)) {
      throw DataError(targets.place + ": target " + std::to_string(i) + " is " + std::to_string(value) +
                      ", expected 0 to " + std::to_string(classes - 1) + " (dataset.classes)");
    }
    table.classes.push_back(static_cast<std::int64_t>(value));
  }
  return table;
}

Splits load_numpy(const NumpyConfig& config) {
  const auto root = dataset_root(config.root, "numpy");
  auto train = samples_of(read(root, config.train_inputs), read(root, config.train_targets), config.classes);
  auto test = samples_of(read(root, config.test_inputs), read(root, config.test_targets), config.classes);
  if (train.shape != test.shape) throw DataError("dataset numpy: samples to train on and to test on differ in shape");
  return {.train = make_dense(std::move(train), config.classes), .test = make_dense(std::move(test), config.classes)};
}

const bool numpy_registered = Datasets::global().add<NumpyConfig>("numpy", "NumPy arrays (.npy, .npz)", load_numpy);

}  // namespace
}  // namespace phalanx
