// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "engine/sync/synchronizer.h"
#include "framework/collectives/compression/compressed_communicator.h"
#include "framework/comm/communicator.h"
#include "framework/parallel/flat_parameters.h"

namespace phalanx {

/// The fields of a strategy that has none but those of its gradients.
struct GradientConfig {
  Compressors::Choice compression{"none"};

  template <class V>
  void visit(V& v) {
    v("compression", compression, "gradient compression");
  }
};

/// Traffic for the summary of a run: reductions, sent_bytes, uncompressed_bytes, compression_ratio.
Figures figures_of(const Traffic& traffic);

inline bool compresses(const Compressors::Choice& compression) { return compression.selected() != "none"; }

/// The group over which a strategy reduces its gradients, with the strategy's option `compression:`. With `none` it is
/// the data-parallel group itself.
///
/// Where replicas count differently, each rank's tensor is multiplied by its weight, of which all have the mean 1.
class GradientGroup {
 public:
  GradientGroup(CommunicatorPtr group, Compressors::Choice compression, double weight = 1);

  /// Gives each bucket a compressor that knows the shapes of its parameters and remembers nothing yet. Throws
  /// ConfigError where there is a compression and the parameters are not float32.
  void attach(const FlatParameters& parameters);

  /// The same for tensors that are reduced instead of the gradients, one for each bucket and like its values.
  void attach_tensors(const std::vector<at::Tensor>& tensors, const FlatParameters& parameters);

  /// Launches the mean of a bucket's gradients over all ranks. With compression, a bucket whose parameters required
  /// gradients when it was attached and require none at present, as in another turn of the task, is left as it is: what
  /// was left out of its gradients stays with the compressor, and so in state(), until they are reduced again.
  Work all_reduce_mean(const at::Tensor& gradients);

  /// What compression remembers of what is reduced, by bucket; none without.
  StateDict state() const;

  bool compresses() const { return phalanx::compresses(compression_); }

  /// Since attach(); zeros without compression.
  Traffic traffic() const { return compressed_ ? compressed_->traffic() : Traffic{}; }

  /// Of the same; none without compression.
  Figures figures() const { return compressed_ ? figures_of(traffic()) : Figures{}; }

 private:
  bool rests(const at::Tensor& gradients) const;

  CommunicatorPtr group_;
  Compressors::Choice compression_;
  double weight_;
  std::shared_ptr<CompressedCommunicator> compressed_;  // null: none
  std::vector<at::Tensor> tensors_;                     // that it reduces
  std::vector<Bucket> buckets_;                         // whose gradients they are, and that had some to train
};

}  // namespace phalanx
