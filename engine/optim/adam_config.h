#pragma once

#include <vector>

#include "framework/base/config/visitor.h"
#include "framework/base/error.h"

namespace phalanx {

/// What Adam and its relatives have in common.
struct MomentsConfig {
  double lr = 0.001;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  bool amsgrad = false;

  template <class V>
  void visit(V& v) {
    v("lr", lr, "learning rate", config::at_least(0));
    v("beta1", beta1, "share of the mean gradient kept at an update, below 1", config::between(0, 1));
    v("beta2", beta2, "share of the mean squared gradient kept at an update, below 1", config::between(0, 1));
    v("eps", eps, "added to the root that divides", config::at_least(0));
    v("amsgrad", amsgrad, "divide by the largest mean square so far (Reddi et al. 2018)");
  }

  /// Throws ConfigError. A share of 1 would never leave the initial zeros.
  void check() const {
    if (beta1 == 1 || beta2 == 1) throw ConfigError("beta1 and beta2 must be below 1");
  }
};

/// Names of the state.
template <class Kind>
std::vector<Kind> moments(const MomentsConfig& config) {
  std::vector<Kind> kinds{{"exp_avg"}, {"exp_avg_sq"}};
  if (config.amsgrad) kinds.push_back({"max_exp_avg_sq"});
  return kinds;
}

}  // namespace phalanx
