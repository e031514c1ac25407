// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "framework/base/metrics.h"
#include "framework/base/state_dict.h"
#include "framework/collectives/compression/compressed_communicator.h"
#include "framework/comm/communicator.h"
#include "framework/partition/flat_parameters.h"

namespace phalanx {

/// The fields of a strategy that has no options other than those for its gradients.
struct GradientConfig {
  Compressors::Choice compression{"none"};

  template <class V>
  void visit(V& v) {
    v("compression", compression, "gradient compression");
  }
};

/// Returns traffic for the summary of a run: reductions, sent_bytes, uncompressed_bytes, compression_ratio.
Metrics metrics_of(const Traffic& traffic);

inline bool compresses(const Compressors::Choice& compression) { return compression.selected() != "none"; }

/// The group over which a strategy reduces its gradients, with the strategy's option `compression:`. With `none` it is
/// the data-parallel group itself.
///
/// If replicas have different weights, each rank's tensor is multiplied by its weight. The mean of all weights is 1.
class GradientGroup {
 public:
  GradientGroup(CommunicatorPtr group, Compressors::Choice compression, double weight = 1);

  /// Gives each bucket a compressor that knows the shapes of its parameters and has no residual yet. Throws ConfigError
  /// if there is a compression and the parameters are not float32.
  void attach(const FlatParameters& parameters);

  /// Does the same for tensors that are reduced instead of the gradients, one per bucket and of the same size as its
  /// values.
  void attach_tensors(const std::vector<at::Tensor>& tensors, const FlatParameters& parameters);

  /// Launches the mean of a bucket's gradients over all ranks. With compression, a bucket is left unchanged if its
  /// parameters required gradients when it was attached but none of them does now, which happens in another turn of the
  /// task. Its residual stays in the compressor, and so in state(), until its gradients are reduced again.
  Work all_reduce_mean(const at::Tensor& gradients);

  /// Returns the state of the compression for each bucket; empty without compression.
  StateDict state() const;

  bool compresses() const { return phalanx::compresses(compression_); }

  /// Returns the traffic since attach(); zeros without compression.
  Traffic traffic() const { return compressed_ ? compressed_->traffic() : Traffic{}; }

  /// Returns the same traffic as metrics; empty without compression.
  Metrics metrics() const { return compressed_ ? metrics_of(traffic()) : Metrics{}; }

 private:
  bool rests(const at::Tensor& gradients) const;

  CommunicatorPtr group_;
  Compressors::Choice compression_;
  double weight_;
  std::shared_ptr<CompressedCommunicator> compressed_;  // null without compression
  std::vector<at::Tensor> tensors_;                     // the tensors that it reduces
  std::vector<Bucket> buckets_;                         // the buckets of these tensors that had parameters to train
};

}  // namespace phalanx
