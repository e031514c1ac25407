// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "datasets/dataset.h"
#include "tools/bench_train/workload.h"

namespace phalanx::bench_train {

/// Samples in two files that any number of processes map into memory: what all systems train on. Without files, every
/// process draws the same ones from what `sample` says of them.
struct DataFiles {
  std::string inputs{};   // [samples, ...] of the shape and dtype of sample.inputs[0], row by row
  std::string targets{};  // [samples], or [samples, t] where the input is t characters; int64
  std::int64_t samples = 0;
  SampleSpec sample{};
};

/// Whether they are characters, not pictures.
inline bool is_text(const SampleSpec& sample) { return sample.inputs.at(0).dtype == at::kLong; }

/// Draws samples that can be learned: pictures that are a shape of their class and much noise, or characters of which
/// each mostly follows from the one before. The same ones every time. Makes no files for a workload of the zoo.
DataFiles draw_samples(const Workload& workload, const std::string& folder);

/// The first of a dataset's samples, without its changes at random, at most as many as the workload wants.
DataFiles export_samples(const Dataset& dataset, const Workload& workload, const std::string& folder);

/// The same as a dataset. Throws DataError where the files are not that long.
std::shared_ptr<const Dataset> map_samples(const DataFiles& files);

}  // namespace phalanx::bench_train
