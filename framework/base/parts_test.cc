// SPDX-License-Identifier: Apache-2.0
#include "framework/base/parts.h"

#include <gmock/gmock.h>

#include <cstdint>
#include <limits>
#include <vector>

namespace phalanx {
namespace {

using ::testing::ElementsAre;

TEST(Parts, AreEquallyLongIfTheLengthIsDivisible) { EXPECT_THAT(nearly_equal_counts(12, 4), ElementsAre(3, 3, 3, 3)); }

TEST(Parts, TheFirstOnesAreOneLongerOtherwise) {
  EXPECT_THAT(nearly_equal_counts(11, 4), ElementsAre(3, 3, 3, 2));
  EXPECT_THAT(nearly_equal_counts(9, 4), ElementsAre(3, 2, 2, 2));
}

TEST(Parts, TheLastOnesAreEmptyIfThereAreTooFewElements) {
  EXPECT_THAT(nearly_equal_counts(2, 4), ElementsAre(1, 1, 0, 0));
  EXPECT_THAT(nearly_equal_counts(0, 2), ElementsAre(0, 0));
}

TEST(Parts, DivideLists) {
  const std::vector<char> list{'a', 'b', 'c'};
  EXPECT_THAT(part_of(list, 0, 2), ElementsAre('a', 'b'));
  EXPECT_THAT(part_of(list, 1, 2), ElementsAre('c'));
  EXPECT_THAT(part_of(list, 3, 4), ElementsAre());
}

TEST(Parts, FollowEachOther) {
  for (std::int64_t length = 0; length < 20; ++length) {
    for (std::int64_t parts = 1; parts < 8; ++parts) {
      const auto counts = nearly_equal_counts(length, parts);
      std::int64_t begin = 0;
      for (std::int64_t part = 0; part < parts; ++part) {
        EXPECT_EQ(part_begin(length, parts, part), begin) << part << " of " << parts << " of " << length;
        begin += counts[static_cast<std::size_t>(part)];
      }
      EXPECT_EQ(begin, length);
      EXPECT_EQ(part_begin(length, parts, parts), length);
    }
  }
}

TEST(Parts, OfTheGreatestLengthDoNotOverflow) {
  constexpr auto kLongest = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(part_begin(kLongest, 1000, 1000), kLongest);
}

}  // namespace
}  // namespace phalanx
