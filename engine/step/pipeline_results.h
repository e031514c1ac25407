// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <utility>
#include <vector>

#include "engine/step/row_spec.h"
#include "framework/base/batch.h"
#include "framework/comm/communicator.h"
#include "framework/parallel/step.h"

namespace phalanx {

/// Collects the results of a batch, by micro-batch, from the ranks that computed the last stage of a pipeline.
class PipelineResults {
 public:
  struct Setup {
    CommunicatorPtr pipe, control;  // two groups of the same ranks
    std::vector<int> from;          // rank that computes the last stage, by micro-batch
    std::vector<RowSpec> predictions;
    c10::ScalarType loss = c10::ScalarType::Float;
  };

  /// `parts` are the micro-batches; `empty` marks those without rows. All three arguments must outlive the object.
  PipelineResults(const Setup& setup, const std::vector<Batch>& parts, const std::vector<bool>& empty)
      : setup_(setup), parts_(parts), empty_(empty), own_(setup.from.size()) {}

  /// Sets the result of a micro-batch that this rank has computed.
  void set(int micro_batch, Step::Result result) { own_[static_cast<std::size_t>(micro_batch)] = std::move(result); }

  /// Returns the rank on which collect() gathers the results.
  static int collector(const Setup& setup) { return setup.from.front(); }

  /// Gathers all results on one rank. The others get no outputs, no loss, and weight 0. No rank waits for a rank that
  /// has computed none. Collective.
  Step::Result collect() const;

  /// Gathers all results on all ranks. Collective.
  Step::Result share() const;

 private:
  bool here(int micro_batch) const { return from(micro_batch) == setup_.pipe->rank(); }
  bool empty(int micro_batch) const { return empty_[static_cast<std::size_t>(micro_batch)]; }
  int from(int micro_batch) const { return setup_.from[static_cast<std::size_t>(micro_batch)]; }
  int count() const { return static_cast<int>(parts_.size()); }
  Tensors outputs_or_room(int micro_batch) const;
  at::Tensor own_losses() const;
  Step::Result merged(std::vector<Tensors> outputs, const at::Tensor& losses) const;

  const Setup& setup_;
  const std::vector<Batch>& parts_;
  const std::vector<bool>& empty_;
  std::vector<Step::Result> own_;
};

/// Tag of the messages of collect(). The tags of activations are below it.
inline constexpr int kResultsTag = kMaxTag - 3;

}  // namespace phalanx
