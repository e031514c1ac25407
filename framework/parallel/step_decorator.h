// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "framework/parallel/step.h"

namespace phalanx {

/// A step that extends the training steps of another one. Evaluations are passed on unchanged.
class StepDecorator : public Step {
 public:
  explicit StepDecorator(Step& inner) : inner_(inner) {}  // `inner` must outlive it

  Result evaluate(const Batch& batch, const Watch& watch) override { return inner_.evaluate(batch, watch); }

 protected:
  Step& inner() { return inner_; }

 private:
  Step& inner_;
};

}  // namespace phalanx
