// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "framework/parallel/step.h"

namespace phalanx {

/// Takes a batch in several parts, one after the other, so that it needs the memory of one part alone. The gradients
/// add up to those of the whole batch, and so does the loss; batch normalisation sees the parts: over all ranks, the
/// i-th parts of all of them.
///
/// Where a batch has fewer rows than there are to be parts, it has as many parts as rows; or some parts are one row of
/// padding, where ranks communicate in each part and all must have as many.
///
/// Who watches sees each stage once, after the last part, with the outputs of all parts and their common loss.
class AccumulatedStep final : public Step {
 public:
  /// `parts` > 0: nearly equal. `always_all`: all of them for each batch. `step` must outlive this one.
  AccumulatedStep(Step& step, std::int64_t parts, bool always_all)
      : step_(step), parts_(parts), always_all_(always_all) {}

  Result run(const Batch& batch, const Watch& watch) override;
  Result evaluate(const Batch& batch, const Watch& watch) override { return step_.evaluate(batch, watch); }

 private:
  Step& step_;
  std::int64_t parts_;
  bool always_all_;
};

}  // namespace phalanx
