// SPDX-License-Identifier: Apache-2.0
// Tests verification and retrieval, the meters of embeddings.
#include <ATen/core/Tensor.h>
#include <gmock/gmock.h>

#include <limits>
#include <string>
#include <vector>

#include "engine/testing/meter.h"
#include "framework/base/error.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::integers;
using testing::metric_of;
using testing::metrics_of;
using testing::numbers;
using ::testing::Pair;
using ::testing::ThrowsMessage;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// The distances are 0.1 and 0.9 within a class, and 0.4 and 2 between classes.
const at::Tensor kPairs = numbers({0, 0.1, 1, 1.9, 2, 2.4, 3, 5}).view({4, 2, 1});
const at::Tensor kIdentities = integers({1, 1, 2, 2, 1, 2, 3, 4}).view({4, 2});

TEST(Verification, JudgesPairsByTheirDistance) {
  EXPECT_THAT(metrics_of("verification", kPairs, kIdentities), ElementsAre(Pair("accuracy", 0.5)));
  EXPECT_EQ(metric_of("{name: verification, threshold: 0.3}", kPairs, kIdentities), 0.75);
  EXPECT_EQ(metric_of("{name: verification, threshold: 1}", kPairs, kIdentities), 0.75);
}

TEST(Verification, ComparesTheFirstMemberWithAllOthers) {
  const auto triplets = numbers({0, 0.1, 3, 0, 0.1, 0.2}).view({2, 3, 1});
  EXPECT_EQ(metric_of("verification", triplets, integers({1, 1, 2, 5, 5, 6}).view({2, 3})), 0.75);
}

TEST(Verification, NanEmbeddingsAreNeverCorrect) {
  const auto pairs = numbers({0, kNone, kNone, 1}).view({2, 2, 1});
  EXPECT_EQ(metric_of("verification", pairs, integers({1, 1, 1, 2}).view({2, 2})), 0);
}

TEST(Verification, RefusesSamplesOfOneMemberAndOtherShapes) {
  EXPECT_THAT([] { metric_of("verification", numbers({1, 2}).view({2, 1}), integers({1, 2})); },
              ThrowsMessage<ConfigError>(HasSubstr("two members or more")));
  EXPECT_THAT([] { metric_of("retrieval", numbers({1, 2}), integers({1, 2})); },
              ThrowsMessage<ConfigError>(HasSubstr("a meter needs embeddings")));
}

// Points on a line: class 1 at 0 and 1, class 2 at 1.4 and 8, class 3 at 20. The point nearest to 1 and to 8 is 1.4.
const at::Tensor kLine = numbers({0, 1, 1.4, 8, 20}).view({5, 1});
const at::Tensor kLineClasses = integers({1, 1, 2, 2, 3});

TEST(Retrieval, CountsSamplesWithOneOfTheirClassAmongTheNearest) {
  EXPECT_THAT(metrics_of("retrieval", kLine, kLineClasses), ElementsAre(Pair("recall_at_1", 0.5)));
  EXPECT_THAT(metrics_of("{name: retrieval, k: 2}", kLine, kLineClasses), ElementsAre(Pair("recall_at_2", 0.75)));
  EXPECT_THAT(metrics_of("{name: retrieval, k: 3}", kLine, kLineClasses), ElementsAre(Pair("recall_at_3", 1.0)));
}

TEST(Retrieval, UsesTheFirstOfSeveralMembers) {
  EXPECT_EQ(metric_of("retrieval", kPairs, kIdentities), 0.0) << "at 0 and 2, with one of another class at 1 between";
  EXPECT_EQ(metric_of("{name: retrieval, k: 2}", kPairs, kIdentities), 0.5) << "and another one at 3";
}

TEST(Retrieval, NanEmbeddingsFindNothing) {
  EXPECT_EQ(metric_of("retrieval", numbers({kNone, kNone, 1}).view({3, 1}), integers({1, 1, 2})), 0);
}

TEST(Retrieval, LooksAtSamplesOfAllRanksAndNotAtPadding) {
  testing::run_ranks("inproc", 2, [](const CommunicatorPtr& group) {
    const auto meter = testing::make_meter("retrieval");
    const auto line = numbers({0, 1, 1.4, 8, 1.45}).view({5, 1}), classes = integers({1, 1, 2, 2, 2});
    const std::int64_t from = 2 * group->rank(), rows = 2 + group->rank();
    Batch batch = testing::batch_of(classes.narrow(0, from, rows));
    batch.valid = 2;  // the row at 1.45 is padding
    meter->add(batch, {.outputs = {line.narrow(0, from, rows)}});
    EXPECT_THAT(meter->take(*group), ElementsAre(Pair("recall_at_1", 0.5)));
    EXPECT_THAT(meter->take(*group), ElementsAre(Pair("recall_at_1", 0.0))) << "nothing added";
  });
}

}  // namespace
}  // namespace phalanx
