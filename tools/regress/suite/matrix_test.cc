// SPDX-License-Identifier: Apache-2.0
#include "tools/regress/suite/matrix.h"

#include <gmock/gmock.h>

namespace phalanx::regress {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Axes axes(const std::vector<std::pair<std::string, std::vector<std::string>>>& all) {
  Axes result;
  for (const auto& [key, values] : all) result[key].values = values;
  return result;
}

TEST(Matrix, WithoutAxesHasOneCombination) { EXPECT_THAT(combinations({}, {}), ElementsAre(IsEmpty())); }

TEST(Matrix, CombinesAllValuesAndTheLastAxisVariesFastest) {
  const auto all = combinations(axes({{"a.b", {"x"}}, {"seeds", {"1", "2"}}, {"ranks", {"4"}}}), {});
  EXPECT_THAT(all,
              ElementsAre(ElementsAre(Coordinate{"ranks", "4"}, Coordinate{"seeds", "1"}, Coordinate{"a.b", "x"}),
                          ElementsAre(Coordinate{"ranks", "4"}, Coordinate{"seeds", "2"}, Coordinate{"a.b", "x"})));
}

TEST(Matrix, LeavesOutCombinationsThatAnExclusionMatchesInAllItsKeys) {
  const Axes matrix = axes({{"ranks", {"1", "2", "4"}}, {"strategies", {"single", "all_reduce"}}});
  EXPECT_THAT(combinations(matrix, {{axes({{"ranks", {"2", "4"}}, {"strategies", {"single"}}})}}), SizeIs(4));
  EXPECT_THAT(combinations(matrix, {{axes({{"ranks", {"1", "2", "4"}}})}}), IsEmpty());
}

TEST(Matrix, AxesStandForKeysOfConfigsAndHostsForNone) {
  EXPECT_THAT(overrides_of({{"ranks", "2"}, {"hosts", "2"}, {"meshes", "{pipe: 2}"}, {"optimizer.lr", "0.1"}}),
              ElementsAre("launch.ranks=2", "mesh={pipe: 2}", "optimizer.lr=0.1"));
}

TEST(CaseName, IsReadableAndUsableAsAFileName) {
  EXPECT_EQ(name_of_case("configs/quickstart.yaml", "", {}), "quickstart");
  EXPECT_EQ(name_of_case("configs/quickstart.yaml", "killed", {{"ranks", "2"}, {"backends", "gloo"}}),
            "quickstart-killed-ranks=2-backend=gloo");
  EXPECT_EQ(
      name_of_case("a.yaml", "", {{"strategies", "{name: sharded, stage: 3}"}, {"meshes", "{pipe: 2, tensor: 2}"}}),
      "a-strategy=sharded.stage3-mesh=pipe2.tensor2");
  EXPECT_EQ(name_of_case("a.yaml", "", {{"dataset.file", "../b c/d.txt"}}), "a-dataset.file=.._bc_d.txt");
}

TEST(CaseName, IsCutIfItIsTooLongButStaysDistinct) {
  const auto name = [](char last) { return name_of_case("a.yaml", "", {{"model", std::string(300, 'x') + last}}); };
  EXPECT_THAT(name('a'), SizeIs(150));
  EXPECT_NE(name('a'), name('b'));
}

}  // namespace
}  // namespace phalanx::regress
