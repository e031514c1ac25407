// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/hooks.h"
#include "framework/base/sample_spec.h"
#include "framework/comm/communicator.h"

namespace phalanx {

/// The outputs of a model for each sample of a split, and the targets.
///
/// A safetensors file of these tensors, each [samples, ...] in the order of the dataset: the model's outputs as the
/// task's losses see them, by the names of ModelSpec::outputs; the task's targets, by their names; and where the
/// first output has a score for each class of the first target, "predicted": the class with the largest score, int64.
class Predictions {
 public:
  /// `targets`: Task::targets().
  Predictions(const ModelSpec& model, const std::vector<TensorSpec>& targets);

  /// This rank's share of a batch, after its forward; in the order of the batches.
  void add(const State& state);

  /// Gathers the shares of all ranks on rank 0, which writes the file. Collective. Throws DataError on rank 0 where it
  /// cannot be written.
  void save(const std::string& path, Communicator& group) const;

 private:
  std::vector<std::string> names_;
  std::size_t outputs_;                   // of the names; those of targets follow
  bool classes_;                          // whether there is "predicted", the last name
  std::vector<Tensors> rows_;             // by name, then by batch
  std::vector<std::int64_t> valid_rows_;  // by batch
};

}  // namespace phalanx
