// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "framework/base/config/config.h"
#include "framework/base/error.h"

namespace phalanx {

/// Options of optimizers that divide a running mean of gradients by the root of a running mean of their squares.
struct MomentsConfig {
  double lr = 0.001;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;

  template <class V>
  void visit(V& v) {
    v("lr", lr, "learning rate", config::at_least(0));
    v("beta1", beta1, "decay rate of the first moment, below 1", config::between(0, 1));
    v("beta2", beta2, "decay rate of the second moment, below 1", config::between(0, 1));
    v("eps", eps, "added to the denominator for numerical stability", config::above(0));
  }

  /// Throws ConfigError for betas of 1, with which the moments would stay at their initial zeros.
  void check() const {
    if (beta1 == 1 || beta2 == 1) throw ConfigError("beta1 and beta2 must be below 1");
  }
};

}  // namespace phalanx
