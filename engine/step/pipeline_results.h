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

/// What the last stage of a pipeline gives of a batch, micro-batch by micro-batch: first each on the rank that computes
/// it.
class PipelineResults {
 public:
  struct Setup {
    CommunicatorPtr pipe, control;  // the same ranks
    std::vector<int> from;          // rank that computes the last stage, by micro-batch
    std::vector<RowSpec> predictions;
    c10::ScalarType loss = c10::ScalarType::Float;
  };

  /// `parts`: the micro-batches, of which those in `empty` have no rows. All three must outlive it.
  PipelineResults(const Setup& setup, const std::vector<Batch>& parts, const std::vector<bool>& empty)
      : setup_(setup), parts_(parts), empty_(empty), own_(setup.from.size()) {}

  /// Of a micro-batch that this rank has computed.
  void set(int micro_batch, Step::Result result) { own_[static_cast<std::size_t>(micro_batch)] = std::move(result); }

  /// The rank that collect() brings them to.
  static int collector(const Setup& setup) { return setup.from.front(); }

  /// All of them on one rank; others get no outputs, no loss, and the weight 0. No rank waits for one that has computed
  /// none. Collective.
  Step::Result collect() const;

  /// All of them on all ranks. Collective.
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

/// Tags of the messages of collect(); those of activations are below.
inline constexpr int kResultsTag = kMaxTag - 3;

}  // namespace phalanx
