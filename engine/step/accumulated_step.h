// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "framework/parallel/step_decorator.h"

namespace phalanx {

/// Computes a batch in several parts, one after the other, so that it needs the memory of only one part. Gradients and
/// losses add up to the gradients and the loss of the whole batch. Batch normalisation sees parts: the i-th parts of
/// all ranks together.
///
/// A batch with fewer rows than parts is divided into as many parts as it has rows. If ranks communicate in each part,
/// they need equal numbers of parts; some of them are then one row of padding.
///
/// A watcher sees each stage once, after the last part, with the outputs of all parts and their common loss.
class AccumulatedStep final : public StepDecorator {
 public:
  /// `parts` > 0 is the number of parts, which are nearly equal. With `always_all`, every batch has all of them.
  /// `inner` must outlive this object.
  AccumulatedStep(Step& inner, std::int64_t parts, bool always_all)
      : StepDecorator(inner), parts_(parts), always_all_(always_all) {}

  Result run(const Batch& batch, const Watch& watch) override;

 private:
  std::int64_t parts_;
  bool always_all_;
};

}  // namespace phalanx
