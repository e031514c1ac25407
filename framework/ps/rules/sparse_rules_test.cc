// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/_fused_adagrad.h>
#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "framework/base/config/config.h"
#include "framework/ps/rules/sparse_rule.h"

namespace phalanx::ps {
namespace {

constexpr std::size_t kRuleDim = 7;
constexpr double kRate = 0.1;

// A row to which a rule is applied, and gradients that differ in sign and size.
struct Row {
  explicit Row(const std::string& text) : rule(config::load_as<RowRules::Choice>("rule", text, "test").make()) {
    state.resize(static_cast<std::size_t>(rule->state_size(kRuleDim)));
  }
  void apply(const std::vector<float>& update, double scale = kRate) {
    rule->apply(values, state, update.data(), {.scale = scale});
  }

  std::unique_ptr<RowRule> rule;
  std::vector<float> values = std::vector<float>(kRuleDim, 1);
  std::vector<float> state;
};

std::vector<float> gradient(int step) {
  std::vector<float> values;
  for (std::size_t i = 0; i < kRuleDim; ++i) values.push_back(std::sin(static_cast<float>(1 + step * 3 + 5 * i)));
  return values;
}

void expect_near(const std::vector<float>& values, const at::Tensor& expected) {
  for (std::size_t i = 0; i < kRuleDim; ++i) EXPECT_NEAR(values[i], expected.const_data_ptr<float>()[i], 2e-6) << i;
}

TEST(RowRules, SimpleRulesChangeRowsAsTheirNamesSay) {
  Row copy("copy"), add("add"), sgd("sgd");
  for (auto* row : {&copy, &add, &sgd}) row->apply(std::vector<float>(kRuleDim, 3), 2);
  EXPECT_EQ(copy.values, std::vector<float>(kRuleDim, 6));
  EXPECT_EQ(add.values, std::vector<float>(kRuleDim, 7));
  EXPECT_EQ(sgd.values, std::vector<float>(kRuleDim, -5));
}

TEST(RowRules, AdagradGivesTheResultsOfLibTorch) {
  Row row("adagrad");
  auto values = at::full({kRuleDim}, 1, at::kFloat), sums = at::zeros({kRuleDim});
  for (int step = 0; step < 20; ++step) {
    row.apply(gradient(step));
    auto count = at::full({}, step + 1, at::kFloat);
    at::_fused_adagrad_({values}, {at::tensor(gradient(step))}, {sums}, {count}, kRate, 0, 0, 1e-10, false);
    expect_near(row.values, values);
  }
}

TEST(RowRules, RowwiseAdagradAddsTheMeanSquare) {
  Row row("{name: adagrad, rowwise: true, eps: 0.01}");
  EXPECT_EQ(row.state.size(), 1u);
  std::vector<double> expected(kRuleDim, 1);
  double sum = 0;
  for (int step = 0; step < 20; ++step) {
    const auto u = gradient(step);
    row.apply(u);
    for (const double one : u) sum += one * one / kRuleDim;
    for (std::size_t i = 0; i < kRuleDim; ++i) {
      expected[i] -= kRate * u[i] / (std::sqrt(sum) + 0.01);
      EXPECT_NEAR(row.values[i], expected[i], 2e-6);
    }
  }
}

TEST(RowRules, AdamGivesTheResultsOfLibTorch) {
  Row row("{name: adam, beta2: 0.99}");
  auto values = at::full({kRuleDim}, 1, at::kFloat), mean = at::zeros({kRuleDim}), square = at::zeros({kRuleDim});
  for (int step = 0; step < 20; ++step) {
    row.apply(gradient(step));
    auto count = at::full({}, step + 1, at::kFloat);
    at::_fused_adam_({values}, {at::tensor(gradient(step))}, {mean}, {square}, {}, {count}, kRate, 0.9, 0.99, 0, 1e-8,
                     false, false);
    expect_near(row.values, values);
  }
}

TEST(RowRules, WithoutEpsAZeroGradientChangesNothing) {
  Row row("{name: adagrad, eps: 0}");
  row.apply(std::vector<float>(kRuleDim, 0));
  EXPECT_EQ(row.values, std::vector<float>(kRuleDim, 1));
}

}  // namespace
}  // namespace phalanx::ps
