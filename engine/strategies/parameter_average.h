// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <map>
#include <optional>
#include <vector>

#include "engine/strategies/gradient_group.h"
#include "engine/strategies/strategy.h"

namespace phalanx {

/// Replaces replicas that have drifted apart with their mean. With compression, each rank sends how far its replica has
/// moved since the replicas were last equal, with error feedback so that small steps are not lost. This needs a copy of
/// the parameters. Bytes on the wire: as many as an all-reduce of the parameters sends.
///
/// With an outer optimizer, the mean movement d of the replicas is a gradient for that optimizer instead of the step
/// itself. With Nesterov momentum, v = momentum v + d, and all replicas move to last + lr (d + momentum v), or only
/// part of the way there if the result is late.
class ParameterAverage {
 public:
  struct Outer {
    double lr = 1;
    double momentum = 0;
    bool late = false;  // launch() and merge() are called steps apart
  };

  /// `weight` is the weight of this rank's replica. The mean of all weights is 1.
  ParameterAverage(CommunicatorPtr group, Compressors::Choice compression, double weight,
                   std::optional<Outer> outer = {});

  /// Declares that the replicas are equal now.
  void attach(const FlatParameters& parameters);

  /// Declares that the replicas are equal again after other code has changed the values. Their movement is measured
  /// from here.
  void reset();

  /// Replaces the values of every `stride`-th bucket, starting with `first`, with the mean over the ranks, which is
  /// bitwise the same on all of them. Collective.
  void average(std::size_t first = 0, std::size_t stride = 1);

  /// The two halves of average(): launch() starts the exchange, and merge() waits for it and takes the step. With
  /// `own`, the replicas become own x + (1 - own) y, where x are their values when merge() is called and y those that
  /// average() would have given them. The next movement is measured from y. Collective.
  void launch(std::size_t first, std::size_t stride);
  void merge(std::size_t first, std::size_t stride, double own = 0);

  /// Averages another tensor that belongs to the replicas, such as optimizer state. Never compressed. Collective.
  void average(const at::Tensor& values);

  /// Returns, for each parameter, its values when replicas were last equal, the outer momentum, and movements that are
  /// still to be merged; and, for each bucket, the residual of the compression. Waits for exchanges in flight.
  StateDict state();

  Traffic traffic() const { return steps_.traffic(); }
  bool compresses() const { return steps_.compresses(); }
  std::size_t buckets() const { return values_.size(); }

 private:
  bool measures() const { return steps_.compresses() || outer_; }  // keeps track of how far replicas move
  void step(std::size_t bucket, double own);
  void wait_for_all();

  GradientGroup uncompressed_, steps_;
  std::optional<Outer> outer_;
  std::vector<at::Tensor> values_;
  std::vector<std::vector<Segment>> segments_;  // of these buckets
  std::vector<at::Tensor> last_;                // values when replicas were equal; empty unless it measures()
  std::vector<at::Tensor> moved_;               // movement since then; empty unless it measures()
  std::map<std::size_t, Work> works_;           // in flight, by bucket
  std::vector<at::Tensor> velocity_;            // of the outer optimizer; empty without one
};

}  // namespace phalanx
