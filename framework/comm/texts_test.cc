// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/texts.h"

#include <gmock/gmock.h>

#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::run_ranks;

std::string text_of(int rank) { return std::string(static_cast<std::size_t>(3 * rank), 'x') + std::to_string(rank); }

TEST(Texts, OfAnyLengthAreGathered) {
  run_ranks("inproc", 3, [](const CommunicatorPtr& world) {
    const auto expected = ElementsAre("0", "xxx1", "xxxxxx2");
    EXPECT_THAT(all_gather_text(text_of(world->rank()), *world), expected);
    const auto on_root = gather_text(text_of(world->rank()), *world);
    if (world->rank() == 0) {
      EXPECT_THAT(on_root, expected);
    } else {
      EXPECT_THAT(on_root, IsEmpty());
    }
  });
}

TEST(Texts, OfRankZeroReachAllRanks) {
  run_ranks("inproc", 3, [](const CommunicatorPtr& world) {
    const std::string first = "of rank 0, with\nlines and \xC3\xBC";
    EXPECT_EQ(broadcast_text(world->rank() == 0 ? first : text_of(world->rank()), *world), first);
  });
}

TEST(Texts, MayBeEmpty) {
  run_ranks("inproc", 3, [](const CommunicatorPtr& world) {
    EXPECT_THAT(all_gather_text("", *world), ElementsAre("", "", ""));
    EXPECT_EQ(broadcast_text(world->rank() == 0 ? "" : "not asked", *world), "");
  });
}

}  // namespace
}  // namespace phalanx
