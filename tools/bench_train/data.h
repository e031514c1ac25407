// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "datasets/dataset.h"
#include "tools/bench_train/workload.h"

namespace phalanx::bench_train {

/// Training samples of all systems, in two files that any number of processes map into memory. Without files, every
/// process draws the same samples from the description in `sample`.
struct DataFiles {
  std::string inputs{};   // [samples, ...] with the shape and dtype of sample.inputs[0], row by row
  std::string targets{};  // [samples], or [samples, t] for inputs of t characters; int64
  std::int64_t samples = 0;
  SampleSpec sample{};
};

/// Returns true if the samples are characters, not images.
inline bool is_text(const SampleSpec& sample) { return sample.inputs.at(0).dtype == at::kLong; }

/// Draws samples that can be learned: images of a class-specific shape with much noise, or characters that mostly
/// follow from their predecessors. Always draws the same samples. Makes no files for a workload of the zoo.
DataFiles draw_samples(const Workload& workload, const std::string& folder);

/// Writes the first samples of a dataset, at most as many as the workload needs, without random augmentation.
DataFiles export_samples(const Dataset& dataset, const Workload& workload, const std::string& folder);

/// Returns the samples as a dataset. Throws DataError if the files are too short.
std::shared_ptr<const Dataset> map_samples(const DataFiles& files);

}  // namespace phalanx::bench_train
