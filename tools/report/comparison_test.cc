// SPDX-License-Identifier: Apache-2.0
#include "tools/report/comparison.h"

#include <gmock/gmock.h>

#include "engine/watch/html/run_record.h"
#include "engine/watch/html/run_summary.h"
#include "framework/base/error.h"
#include "tools/report/comparison_page.h"

namespace phalanx {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;

RunRecord run(const std::string& path, const std::string& config, double loss) {
  return {
      .path = path,
      .config = config,
      .summary = RunSummary{.name = "x", .samples_per_second = 12345.6, .train_seconds = 90, .steps = 10, .ranks = 2},
      .metrics = {"loss"},
      .curves = {{"train/loss", {{5, 2 * loss}, {10, loss}}}, {"test/loss", {{10, loss}}}}};
}

TEST(Comparison, HasARowForEachFieldOfAnyRun) {
  auto unfinished = run("runs/b", "", 0.25);
  unfinished.summary.reset();
  const auto rows = compare_key_metrics({run("runs/a", "", 0.5), unfinished});
  EXPECT_THAT(rows[0], ElementsAre("result", "a", "b"));
  EXPECT_THAT(rows[1], ElementsAre("test loss", "0.5", "0.25"));
  EXPECT_THAT(rows[3], ElementsAre("samples per second", "12 346", ""));
  EXPECT_THAT(rows.back(), ElementsAre("time", "1 min 30 s", ""));
}

TEST(Comparison, ShowsTheKeysOfConfigsThatDiffer) {
  const auto rows = compare_configs({run("a", "model: {name: mlp, hidden: [3, 4]}\nseed: 1\n", 1),
                                     run("b", "model: {name: mlp, hidden: [3, 5]}\nseed: 1\nextra: \"\"\n", 1)});
  EXPECT_THAT(rows, ElementsAre(ElementsAre("config", "a", "b"), ElementsAre("model.hidden[1]", "4", "5"),
                                ElementsAre("extra", "", "\"\"")));
  EXPECT_THAT(compare_configs({run("a", "seed: 1", 1), run("b", "seed: 1", 2)}), SizeIs(1));
}

TEST(Comparison, RefusesAMalformedConfig) {
  EXPECT_THAT([] { compare_configs({run("a", "seed: [", 1), run("b", "", 1)}); },
              ThrowsMessage<DataError>(HasSubstr("a/config.yaml:1:")));
}

TEST(Comparison, RunsWithTheSameNameAreNamedByTheirPaths) {
  EXPECT_THAT(names_of({run("x/run", "", 1), run("y/run/", "", 1), run("y/other/", "", 1)}),
              ElementsAre("x/run", "y/run/", "other"));
}

TEST(Comparison, TextIsAlignedAndLongCellsAreCut) {
  EXPECT_EQ(to_text("", {{"head", "first"}, {"a", std::string(50, 'x') + "end"}, {"longer", ""}}),
            "head                                  first\n"
            "a        …" +
                std::string(30, 'x') + "end\n" + "longer\n");
}

TEST(Comparison, CellsAreCutBetweenCharacters) {
  std::string name, end;
  for (int i = 0; i < 50; ++i) name += "ü";
  for (int i = 0; i < 30; ++i) end += "ü";
  EXPECT_EQ(to_text("Größe", {{"head", "first"}, {"a", name + "end"}}),
            "Größe\n"
            "head                                first\n"
            "a      …" +
                end + "end\n");
}

TEST(Comparison, ThePageHasACurveOfEachRun) {
  const auto page = to_comparison_page({run("a", "seed: 1", 1), run("b<", "seed: 2", 2)});
  EXPECT_THAT(
      page, AllOf(HasSubstr("2 runs compared"), HasSubstr("train loss"), HasSubstr("b&lt;"), HasSubstr("<td>2</td>")));
}

TEST(Comparison, ThePageShowsOnlyTheFirstOfManyMetrics) {
  auto many = run("a", "seed: 1", 1), other = run("b", "seed: 2", 1);
  for (int i = 1; i < 20; ++i) {
    many.metrics.push_back("r" + std::to_string(i));
    many.curves["test/r" + std::to_string(i)] = {{1, 1}};
  }
  EXPECT_THAT(to_comparison_page({many, other}),
              AllOf(HasSubstr("test r11<"), Not(HasSubstr("test r12<")), HasSubstr("8 more metrics")));
}

}  // namespace
}  // namespace phalanx
