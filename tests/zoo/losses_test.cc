// SPDX-License-Identifier: Apache-2.0
// Compares losses and their gradients with PyTorch and torchvision. goldens/make_losses.py writes losses.golden and
// describes its contents.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <gmock/gmock.h>

#include <cmath>
#include <string>
#include <vector>

#include "engine/loss/loss.h"
#include "framework/base/config/config.h"
#include "tests/zoo/golden.h"
#include "tests/zoo/model_under_test.h"

namespace phalanx {
namespace {

at::Tensor target_of(const std::string& kind, const std::vector<std::int64_t>& output) {
  std::int64_t count = 1;
  for (const auto size : output) count *= size;
  if (kind == "values") return ((at::arange(count, at::kLong) % 3).to(at::kDouble) / 2).view(output);
  const std::vector<std::int64_t> sizes(output.begin(), output.end() - 1);
  const auto i = at::arange(count / output.back(), at::kLong);
  return ((7 * i + i.div(3, "floor")) % std::stoll(kind.substr(8))).view(sizes);  // after "classes "
}

class GoldenLosses : public ::testing::TestWithParam<testing::GoldenLine> {};
INSTANTIATE_TEST_SUITE_P(Lines, GoldenLosses, ::testing::ValuesIn(testing::golden_lines("tests/zoo/losses.golden")));

TEST_P(GoldenLosses, MatchTheirOriginals) {
  const auto& golden = GetParam();
  SCOPED_TRACE(golden.text(1));
  const auto loss = config::load_as<Losses::Choice>("loss", golden.text(1), "test.yaml").make();
  const auto output = testing::waves(golden.integers(2)).to(at::kDouble).requires_grad_();
  const auto mean = loss->mean(output, target_of(golden.text(3), golden.integers(2)));
  EXPECT_NEAR(mean.item<double>(), golden.value(4), 1e-9);
  mean.backward();
  const auto pattern = at::arange(output.numel(), at::kDouble).cos();
  EXPECT_NEAR((output.grad().flatten() * pattern).sum().item<double>(), golden.value(5), 1e-9);
}

}  // namespace
}  // namespace phalanx
