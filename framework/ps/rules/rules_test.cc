// SPDX-License-Identifier: Apache-2.0
#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "framework/base/config/config.h"
#include "framework/base/error.h"
#include "framework/ps/rules/update_rule.h"

namespace phalanx::ps {
namespace {

std::unique_ptr<UpdateRule> rule(const std::string& yaml) {
  return config::load_as<UpdateRules::Choice>("rule", yaml, "test").make();
}

// Returns the values after a rule has applied an update of 3 elements.
std::vector<double> values_after(const std::string& yaml, const std::vector<double>& values,
                                 const std::vector<double>& update, const UpdateInfo& info = {}) {
  const auto x = at::tensor(values, at::kDouble), u = at::tensor(update, at::kDouble);
  const auto made = rule(yaml);
  made->attach(x);
  made->apply(u, info);
  EXPECT_TRUE(u.equal(at::tensor(update, at::kDouble))) << yaml << " wrote into the update";
  return {x.const_data_ptr<double>(), x.const_data_ptr<double>() + x.numel()};
}

using Values = std::vector<double>;

TEST(UpdateRules, ChangeValuesAsTheirNamesSay) {
  EXPECT_EQ(values_after("none", {1, 2, 3}, {5, 5, 5}), Values({1, 2, 3}));
  EXPECT_EQ(values_after("zero", {1, 2, 3}, {5, 5, 5}), Values({0, 0, 0}));
  EXPECT_EQ(values_after("copy", {1, 2, 3}, {5, 6, 7}), Values({5, 6, 7}));
  EXPECT_EQ(values_after("copy", {1, 2, 3}, {5, 6, 7}, {.scale = 0.5}), Values({2.5, 3, 3.5}));
  EXPECT_EQ(values_after("max", {1, 9, 3}, {5, 6, 3}), Values({5, 9, 3}));
  EXPECT_EQ(values_after("add", {1, 2, 3}, {5, 6, 7}), Values({6, 8, 10}));
  EXPECT_EQ(values_after("add", {1, 2, 3}, {5, 6, 7}, {.scale = -2}), Values({-9, -10, -11}));
  EXPECT_EQ(values_after("{name: lerp, weight: 0.25}", {1, 2, 4}, {5, 2, 0}), Values({2, 2, 3}));
  EXPECT_EQ(values_after("{name: add, factor: 0.5}", {1, 2, 3}, {4, 6, 8}), Values({3, 5, 7}));
}

TEST(UpdateRules, AddDividesTheStepByAPowerOfItsAge) {
  EXPECT_EQ(values_after("{name: add, staleness_power: 1}", {0}, {12}, {.staleness = 2}), Values({4}));
  EXPECT_EQ(values_after("{name: add, staleness_power: 0.5}", {0}, {12}, {.staleness = 3}), Values({6}));
  EXPECT_EQ(values_after("{name: add, staleness_power: 1}", {0}, {12}, {.staleness = 0}), Values({12}));
}

TEST(UpdateRules, ASumOfAClockStartsAtZeroInTheNextClock) {
  const auto x = at::full({1}, 100.0, at::kDouble);
  const auto made = rule("sum_of_clock");
  made->attach(x);
  const auto add = [&](double value, std::int64_t clock) {
    made->apply(at::full({1}, value, at::kDouble), {.clock = clock});
    return x.item<double>();
  };
  EXPECT_EQ(add(1, 0), 1);
  EXPECT_EQ(add(2, 0), 3);
  EXPECT_EQ(add(5, 1), 5);
  EXPECT_EQ(add(6, 1), 11);
}

TEST(UpdateRules, IntegersAreAddedExactlyOrNotAtAll) {
  const auto x = at::full({2}, (std::int64_t{1} << 53), at::kLong), one = at::full({2}, 1, at::kLong);
  const auto exact = rule("add");
  exact->attach(x);
  exact->apply(one, {});
  EXPECT_EQ(x[0].item<std::int64_t>(), (std::int64_t{1} << 53) + 1);
  EXPECT_THROW(rule("{name: add, factor: 0.5}")->attach(x), ConfigError);
  EXPECT_THROW(rule("dc_asgd")->attach(x), ConfigError);
}

// Zheng et al. 2017, equation 10 and section 5, computed by hand: two clients read 1, one of them changes the values,
// and then the gradient of the other arrives late.
TEST(DcAsgd, CompensatesForHowFarTheValuesHaveMovedSinceTheClientReadThem) {
  const double lambda = 0.5, decay = 0.9, rate = 0.1;
  double x = 1, average = 0;
  const auto by_hand = [&](double gradient, double read) {
    average = decay * average + (1 - decay) * gradient * gradient;
    x -= rate * (gradient + lambda / std::sqrt(average + 1e-7) * gradient * gradient * (x - read));
  };
  const auto values = at::full({1}, 1.0, at::kDouble);
  const auto made = rule("{name: dc_asgd, lambda: 0.5, mean_square: 0.9}");
  made->attach(values);
  made->read_by(0);
  made->read_by(1);
  made->apply(at::full({1}, 2.0, at::kDouble), {.client = 0, .scale = rate});
  by_hand(2, 1);
  made->apply(at::full({1}, -3.0, at::kDouble), {.client = 1, .staleness = 1, .scale = rate});
  by_hand(-3, 1);
  EXPECT_NEAR(values.item<double>(), x, 1e-12);
  EXPECT_NE(x, 1 - 0.1 * 2 + 0.1 * 3);  // the result differs from plain gradient descent
}

TEST(DcAsgd, KeepsItsStateOfUnusedElements) {
  const auto values = at::full({4}, 1.0, at::kDouble);
  const auto made = rule("{name: dc_asgd, lambda: 0.5, mean_square: 0.5}");
  made->attach(values);
  made->apply(at::full({4}, 2.0, at::kDouble), {.scale = 0.1});
  made->apply(at::tensor({2.0, 0.0, 0.0, 2.0}, at::kDouble), {.scale = 0.1, .unused = {{1, 3}}});
  EXPECT_TRUE(made->state().at(0).values.equal(at::tensor({3.0, 2.0, 2.0, 3.0}, at::kDouble)));
  EXPECT_TRUE(values.allclose(at::tensor({0.6, 0.8, 0.8, 0.6}, at::kDouble)));
}

TEST(DcAsgd, WithoutADelayIsGradientDescent) {
  const auto values = at::full({2}, 1.0, at::kDouble);
  const auto made = rule("dc_asgd");
  made->attach(values);
  for (int step = 0; step < 3; ++step) {
    made->read_by(0);
    made->apply(at::full({2}, 0.5, at::kDouble), {.client = 0, .scale = 0.1});
  }
  EXPECT_NEAR(values[0].item<double>(), 1 - 3 * 0.05, 1e-12);
}

}  // namespace
}  // namespace phalanx::ps
