// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <map>
#include <optional>
#include <vector>

#include "engine/sync/gradient_group.h"
#include "engine/sync/synchronizer.h"

namespace phalanx {

/// Makes replicas that have gone apart their mean again. With compression, what travels is how far each has gone since
/// they were equal, with error feedback, so that small steps survive it; that takes a copy of the parameters.
/// Bytes on the wire: of an all-reduce of the parameters.
///
/// With an outer optimizer, the mean movement d of the replicas is a gradient to it rather than the step itself: with
/// Nesterov momentum, v = momentum v + d, and all replicas go to last + lr (d + momentum v), or, where that is late, a
/// part of the way there.
class ParameterAverage {
 public:
  struct Outer {
    double lr = 1;
    double momentum = 0;
    bool late = false;  // launch() and merge() are called steps apart
  };

  /// `weight`: of this rank's replica; all weights have the mean 1.
  ParameterAverage(CommunicatorPtr group, Compressors::Choice compression, double weight,
                   std::optional<Outer> outer = {});

  /// The replicas are equal now.
  void attach(const FlatParameters& parameters);

  /// They are equal once more, after others have changed the values: how far they go is counted from here.
  void begin_anew();

  /// Values of every `stride`-th bucket from `first` on become the mean over the ranks, bitwise the same on all of
  /// them. Collective.
  void average(std::size_t first = 0, std::size_t stride = 1);

  /// The two halves of average(): launches, and waits and steps. With `own` the replicas become own x + (1 - own) y
  /// where x are their values at the time of merge() and y those that average() would have given them, from which their
  /// next movement is measured. Collective.
  void launch(std::size_t first, std::size_t stride);
  void merge(std::size_t first, std::size_t stride, double own = 0);

  /// The same of something else that goes with them, such as what an optimizer remembers; never compressed. Collective.
  void average(const at::Tensor& values);

  /// Of each parameter its values when replicas were equal, the outer momentum, and mean movements that are late; and
  /// of each bucket what compression has not sent yet. Waits for what is under way.
  StateDict state();

  Traffic traffic() const { return steps_.traffic(); }
  bool compresses() const { return steps_.compresses(); }
  std::size_t buckets() const { return values_.size(); }

 private:
  bool measures() const { return steps_.compresses() || outer_; }  // how far replicas go
  void step(std::size_t bucket, double own);
  void wait_for_all();

  GradientGroup uncompressed_, steps_;
  std::optional<Outer> outer_;
  std::vector<at::Tensor> values_;
  std::vector<std::vector<Segment>> segments_;  // of these
  std::vector<at::Tensor> last_;                // values when replicas were equal; empty unless it measures()
  std::vector<at::Tensor> moved_;               // since then; as last_
  std::map<std::size_t, Work> works_;           // under way, by bucket
  std::vector<at::Tensor> velocity_;            // of the outer optimizer; empty without
};

}  // namespace phalanx
