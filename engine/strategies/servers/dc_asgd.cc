// SPDX-License-Identifier: Apache-2.0
// Delay-compensated asynchronous SGD (Zheng et al. 2017, Asynchronous Stochastic Gradient Descent with Delay
// Compensation, arXiv:1609.08326, algorithms 1 and 2). Each rank computes a gradient g at the parameters b that it has
// read last, pushes it, and reads the parameters again, without waiting for any other rank. The servers, which remember
// b and whose parameters are x when g arrives, go to
//
//   x - rate (g + lambda g g (x - b))                  DC-ASGD-c
//   the same with lambda / sqrt(v + 1e-7) as lambda    DC-ASGD-a: v = m v + (1 - m) g g, m: `mean_square`
//
// where lambda g g approximates the Hessian; all products are elementwise. Memory: the servers keep b for every rank.
// Wire: the parameters' bytes to the servers and back, per rank and step.
#include <memory>

#include "engine/strategies/servers/pushed_gradients.h"
#include "engine/strategies/strategies.h"
#include "framework/base/text.h"

namespace phalanx {
namespace {

struct DcAsgdConfig {
  double lr = 0.01;
  double lambda = 0.04;
  double mean_square = 0;

  template <class V>
  void visit(V& v) {
    v("lr", lr, "learning rate of the servers", config::at_least(0));
    v("lambda", lambda, "strength of the compensation; 0: none, which is asynchronous SGD", config::at_least(0));
    v("mean_square", mean_square,
      "decay of the average of squared gradients by whose root lambda is divided (DC-ASGD-a); 0: lambda is constant "
      "(DC-ASGD-c)",
      config::between(0, 1));
  }

  std::string rule() const {
    return format_text("{name: dc_asgd, lambda: %.17g, mean_square: %.17g}", lambda, mean_square);
  }
};

const bool dc_asgd_registered = Strategies::global().add<DcAsgdConfig>(
    "dc_asgd", "asynchronous: servers apply the ranks' gradients, and compensate for their delay",
    StrategyTraits{.parameter_servers = true,
                   .servers_update = true,
                   .keeps_centre = true,
                   .inter_level = true,
                   .steps_ahead = kStepsAhead},
    [](const DcAsgdConfig& config, const StrategyContext& context) {
      return std::make_unique<PushedGradients>(
          PushedGradients::Options{.rule = config.rule(), .learning_rate = config.lr}, context);
    });

}  // namespace
}  // namespace phalanx
