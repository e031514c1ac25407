#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "engine/sync/gradient_group.h"
#include "engine/sync/synchronizer.h"

namespace phalanx {

/// Makes replicas that have gone apart their mean again. With compression, what travels is how far each has gone since
/// the last time, with error feedback, so that small steps survive it; that takes a copy of the parameters.
/// Bytes on the wire: of an all-reduce of the parameters.
class ParameterAverage {
 public:
  ParameterAverage(CommunicatorPtr group, Compressors::Choice compression);

  /// The values are to be what compression counts from; after attach().
  void begin_anew();

  /// The replicas are equal now.
  void attach(const FlatParameters& parameters);

  /// Values of all buckets become the mean over the ranks, bitwise the same on all of them. Collective.
  void average();

  /// What compression remembers: of each bucket its values after the last average, and what did not travel yet.
  StateDict state() const;

  Figures figures() const { return steps_.figures(); }

 private:
  CommunicatorPtr group_;
  GradientGroup steps_;
  std::vector<at::Tensor> values_;
  std::vector<at::Tensor> last_;   // values after the last average; empty without compression
  std::vector<at::Tensor> moved_;  // since then; as last_
};

}  // namespace phalanx
