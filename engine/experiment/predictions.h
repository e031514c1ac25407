// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/hooks.h"
#include "framework/base/sample_spec.h"
#include "framework/comm/communicator.h"

namespace phalanx {

/// Collects the outputs of a model for each sample of a split, and the targets, and writes them to a file.
///
/// The safetensors file has these tensors, each [samples, ...] in the order of the dataset: the model's outputs as the
/// task's losses see them, under the names of ModelSpec::outputs; and the task's targets, under their names. If the
/// first output has a score for each class of the first target, the file also has "predicted", int64: the class with
/// the largest score.
class Predictions {
 public:
  /// Expects the result of Task::targets() as `targets`.
  Predictions(const ModelSpec& model, const std::vector<TensorSpec>& targets);

  /// Adds this rank's share of a batch after its forward. Must be called in the order of the batches.
  void add(const State& state);

  /// Gathers the shares of all ranks on rank 0, which writes the file. Collective. Throws DataError on rank 0 if the
  /// file cannot be written.
  void save(const std::string& path, Communicator& group) const;

 private:
  std::vector<std::string> names_;
  std::size_t outputs_;                   // number of outputs; they are the first names, then follow the targets
  bool classes_;                          // the last name is "predicted"
  std::vector<Tensors> rows_;             // by name, then by batch
  std::vector<std::int64_t> valid_rows_;  // by batch
};

}  // namespace phalanx
