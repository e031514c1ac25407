// SPDX-License-Identifier: Apache-2.0
// Tests samples that are more than one tensor with one class: pairs, triplets and graphs. The result does not depend on
// the number of ranks, with partners that are drawn again in every epoch, nodes that do not count, and dropout.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/testing/worlds.h"
#include "tests/equivalence/training.h"

namespace phalanx {
namespace {

using testing::relative_difference;
using testing::train;
using testing::train_on_first;
using testing::Trained;

struct MembersCase {
  std::string name;
  std::vector<std::string> changes;
};

void PrintTo(const MembersCase& c, std::ostream* out) { *out << c.name; }

const std::string kDigits = "of: {name: digits, train_samples: 300, test_samples: 60}}";

const std::vector<MembersCase> kCases = {
    {"pairs", {"dataset={name: pairs, " + kDigits, "model={name: siamese, channels: [4, 8], hidden: [16]}"}},
    {"triplets", {"dataset={name: triplets, " + kDigits, "model={name: siamese, channels: [4], normalize: false}"}},
    {"graphs",
     {"dataset={name: graph_communities, train_samples: 300, test_samples: 60, nodes: 20, least_nodes: 5}",
      "model=graph_convolution"}},
};

class Members : public ::testing::TestWithParam<MembersCase> {};
INSTANTIATE_TEST_SUITE_P(Cases, Members, ::testing::ValuesIn(kCases), [](const auto& info) { return info.param.name; });

TEST_P(Members, RanksFollowOneProcess) {
  for (const int ranks : {2, 3}) {
    testing::run_ranks("inproc", ranks, [&](const CommunicatorPtr& world) {
      auto changes = GetParam().changes;
      changes.insert(changes.end(), {"train.max_steps=24", "strategy=all_reduce"});  // 6 epochs
      const auto run = "members_" + GetParam().name + std::to_string(ranks);
      const Trained many = train(testing::training_config(changes), world, run);
      changes.back() = "strategy=single";
      const Trained one = train_on_first(testing::training_config(changes), world, run + "_alone", many);
      EXPECT_LT(relative_difference(many.weights, one.weights), 1e-5);
      ASSERT_EQ(many.test.size(), one.test.size());
      for (std::size_t i = 0; i < one.test.size(); ++i) {
        EXPECT_NEAR(many.test[i].second, one.test[i].second, 1e-4) << one.test[i].first;
      }
    });
  }
}

}  // namespace
}  // namespace phalanx
