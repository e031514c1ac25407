// SPDX-License-Identifier: Apache-2.0
// Tests graph_convolution. goldens/make_graph_convolution.py writes graph_convolution.golden and describes its
// contents.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>

#include <cmath>
#include <string>
#include <vector>

#include "engine/task/task.h"
#include "framework/base/error.h"
#include "tests/zoo/golden.h"
#include "tests/zoo/model_under_test.h"

namespace phalanx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::make_model;
using ::testing::ThrowsMessage;

SampleSpec graphs(std::int64_t nodes, std::int64_t features, std::int64_t classes) {
  return {.inputs = {{.name = "features", .shape = {nodes, features}}, {.name = "adjacency", .shape = {nodes, nodes}}},
          .targets = {{.name = "classes", .shape = {nodes}, .dtype = at::kLong, .classes = classes, .ignored = true}},
          .task = "classification"};
}

at::Tensor edges(std::int64_t count, std::int64_t nodes) {
  const at::Tensor adjacency = at::zeros({count, nodes, nodes});
  for (std::int64_t g = 0; g < count; ++g) {
    const auto last = nodes - (g == count - 1 ? 1 : 0);
    for (std::int64_t i = 0; i < last; ++i) {
      for (std::int64_t j = 0; j < last; ++j) adjacency[g][i][j] = i != j && (i * j + i + j + g) % 3 == 0 ? 1 : 0;
    }
  }
  return adjacency;
}

class GoldenGraphs : public ::testing::TestWithParam<testing::GoldenLine> {};
INSTANTIATE_TEST_SUITE_P(Lines, GoldenGraphs,
                         ::testing::ValuesIn(testing::golden_lines("tests/zoo/graph_convolution.golden")));

TEST_P(GoldenGraphs, ComputesAndLearnsAsEdgeByEdge) {
  const auto& golden = GetParam();
  const auto sizes = golden.integers(2);
  const auto count = sizes[0], nodes = sizes[1];
  const auto sample = graphs(nodes, sizes[2], sizes[3]);
  const auto task = Tasks::Choice(sample.task).make(sample, nullptr);
  const auto model = make_model(golden.text(1), sample);
  EXPECT_EQ(testing::parameters_of(*model), golden.integers(3).at(0));
  testing::fill(*model);
  const auto features = testing::waves({count, nodes, sizes[2]});
  features[-1][-1].zero_();
  const auto i = at::arange(count * nodes, at::kLong);
  const auto target = ((7 * i + i.div(3, "floor")) % sizes[3]).view({count, nodes});
  target[-1][-1].fill_(kIgnored);
  const Batch batch{.inputs = {features, edges(count, nodes)}, .targets = {target}};
  const auto near = [](double expected) { return ::testing::DoubleNear(expected, 2e-5 * (0.05 + std::abs(expected))); };
  const auto scores = model->outputs(batch.inputs).at(0);
  const auto expected = golden.values(4);
  EXPECT_THAT(scores[0][0][0].item<double>(), near(expected.at(0)));
  EXPECT_THAT(scores[0][-2][-1].item<double>(), near(expected.at(1)));
  EXPECT_THAT(scores[-1][-2][-1].item<double>(), near(expected.at(2)));
  const auto loss = task->mean_loss({scores}, batch);
  EXPECT_THAT(loss.item<double>(), near(golden.value(5)));
  loss.backward();
  const at::NoGradGuard no_grad;
  for (auto& parameter : model->parameters()) parameter.sub_(parameter.grad(), 0.1);
  EXPECT_THAT(task->mean_loss(model->outputs(batch.inputs), batch).item<double>(), near(golden.value(6)));
}

TEST(GraphConvolution, HasNamesAndInitialValuesOfPyTorchGeometrics) {
  const auto model = make_model("graph_convolution", graphs(8, 1433, 7));
  EXPECT_THAT(testing::names_of(*model),
              ElementsAre("conv1.bias", "conv1.lin.weight", "conv2.bias", "conv2.lin.weight"));
  EXPECT_EQ(testing::parameters_of(*model), 23063) << "as of Cora, 1433 features and 7 classes";
  const auto parameters = model->parameters();
  EXPECT_EQ(parameters[0].abs().max().item<double>(), 0);
  const double bound = std::sqrt(6.0 / (1433 + 16));
  EXPECT_LE(parameters[1].abs().max().item<double>(), bound);
  EXPECT_NEAR(parameters[1].square().mean().item<double>(), bound * bound / 3, 0.02 * bound * bound);
}

TEST(GraphConvolution, DoesNotDependOnPadding) {
  const auto model = make_model("{name: graph_convolution, dropout: 0}", graphs(9, 4, 3));
  model->eval();
  const auto features = testing::waves({1, 9, 4}), adjacency = edges(1, 9);  // the last node has no edges
  const auto with = model->outputs({features, adjacency}).at(0).narrow(1, 0, 8);
  const auto without = model->outputs({features.narrow(1, 0, 8), adjacency.narrow(1, 0, 8).narrow(2, 0, 8)}).at(0);
  EXPECT_LT((with - without).abs().max().item<double>(), 1e-6);
}

TEST(GraphConvolution, RefusesOtherSamples) {
  const auto refused = ThrowsMessage<ConfigError>(HasSubstr("as in the dataset \"graph_communities\""));
  EXPECT_THAT([] { make_model("graph_convolution", classification_samples({1, 28, 28}, 10)); }, refused);
  auto uneven = graphs(8, 4, 3);
  uneven.inputs[1].shape = {8, 7};
  EXPECT_THAT([&] { make_model("graph_convolution", uneven); }, refused);
}

}  // namespace
}  // namespace phalanx
