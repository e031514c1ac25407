// SPDX-License-Identifier: Apache-2.0
#include "engine/experiment/learning_rate.h"

#include <gtest/gtest.h>

#include "engine/config/experiment_config.h"

namespace phalanx {
namespace {

// Decreases from 1 to 0 over the run.
class LinearDecay final : public Schedule {
 public:
  double factor(std::int64_t step, std::int64_t steps) const override {
    return 1 - static_cast<double>(step) / static_cast<double>(steps);
  }
};

TEST(LearningRate, IsTheInitialOneTimesTheFactorOfTheSchedule) {
  const auto optimizer = Optimizers::Choice("sgd").make({});
  optimizer->set_learning_rate(8);
  LearningRate rate(std::make_unique<LinearDecay>(), *optimizer, 4);
  EXPECT_EQ(rate.factor(1), 0.75);
  rate.set(1);
  EXPECT_EQ(optimizer->learning_rate(), 6);
  rate.set(2);
  EXPECT_EQ(optimizer->learning_rate(), 4) << "factors do not accumulate";
}

}  // namespace
}  // namespace phalanx
