#include "engine/optim/leave_unused.h"

#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "engine/optim/testing_optimizer.h"

namespace phalanx {
namespace {

class LeavesUnused : public ::testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Optimizers, LeavesUnused,
                         ::testing::Values("{name: sgd, lr: 0.1, momentum: 0.9, weight_decay: 0.1}",
                                           "{name: adamw, lr: 0.1, weight_decay: 0.1}",
                                           "{name: lamb, lr: 0.1, weight_decay: 0.1}",
                                           "{name: adafactor, lr: 0.1, weight_decay: 0.1}",
                                           "{name: muon, lr: 0.1, weight_decay: 0.1}"));

// Returns copies of a parameter and of its optimizer state.
std::vector<at::Tensor> kept_of(Optimizer& optimizer, const Bucket& network, const Segment& segment) {
  std::vector<at::Tensor> all{testing::parameter_of(network.values, segment).clone()};
  for (const auto& state : optimizer.state()) {
    if (state.parameter.empty()) all.push_back(state.values.narrow(0, segment.begin, segment.count).clone());
    if (state.parameter == segment.name) all.push_back(state.values.clone());
  }
  return all;
}

TEST_P(LeavesUnused, AsTheyAreAndUpdatesTheOthersAsEver) {
  std::set<std::string> unused;
  LeaveUnused leaves(testing::make_optimizer(GetParam()), [&] { return unused; });
  const auto all = testing::make_optimizer(GetParam());
  const auto network = testing::small_network(), other = testing::small_network();
  leaves.attach({whole(network)});
  all->attach({whole(other)});
  const auto step = [&](std::int64_t number) {
    testing::train(leaves, {whole(network)}, number, number + 1);
    testing::train(*all, {whole(other)}, number, number + 1);
  };
  step(1);
  unused = {network.segments[1].name, network.segments[2].name};
  std::vector<std::vector<at::Tensor>> before;
  for (const auto& segment : network.segments) before.push_back(kept_of(leaves, network, segment));
  step(2);
  for (std::size_t i = 0; i < network.segments.size(); ++i) {
    const auto& segment = network.segments[i];
    const bool left = unused.contains(segment.name);
    const auto now = kept_of(leaves, network, segment);
    const auto expected = left ? before[i] : kept_of(*all, other, segment);
    ASSERT_EQ(now.size(), expected.size());
    for (std::size_t j = 0; j < now.size(); ++j) EXPECT_TRUE(at::equal(now[j], expected[j])) << segment.name << j;
    EXPECT_EQ(at::equal(now[0], before[i][0]), left) << segment.name;
  }
}

}  // namespace
}  // namespace phalanx
