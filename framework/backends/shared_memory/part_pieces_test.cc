// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/shared_memory/part_pieces.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace phalanx::shared_memory {
namespace {

// Checks that the pieces that the owner goes through are those that each reader expects, in the same places.
void expect_places(const std::vector<std::int64_t>& counts, int owner, std::size_t step) {
  const PartLayout parts(counts, static_cast<int>(counts.size()), 0);
  const PartPieces pieces(parts, owner, /*item=*/4, step);
  std::vector<std::int64_t> seen(counts.size());
  PartPieces::Cursor cursor(pieces);
  for (std::int64_t place = 0; place < pieces.total(); ++place, cursor.advance()) {
    const int reader = cursor.reader();
    ASSERT_NE(reader, owner);
    EXPECT_EQ(cursor.index(), seen[reader]++) << "the pieces of a part are in order";
    EXPECT_EQ(pieces.place(reader, cursor.index()), place) << "piece " << cursor.index() << " for " << reader;
  }
  for (int reader = 0; reader < static_cast<int>(counts.size()); ++reader) {
    const auto bytes = static_cast<std::size_t>(counts[reader]) * 4;
    EXPECT_EQ(seen[reader], reader == owner ? 0 : pieces_of(bytes, step)) << "for " << reader;
    EXPECT_EQ(pieces.count(reader), seen[reader]);
  }
}

TEST(PartPieces, HaveOneOrderForTheOwnerAndItsReaders) {
  for (int owner = 0; owner < 4; ++owner) {
    expect_places({100, 100, 100, 100}, owner, 64);
    expect_places({0, 7, 1000, 33}, owner, 64);
    expect_places({500, 0, 0, 1}, owner, 16);
    expect_places({0, 0, 0, 0}, owner, 16);
  }
  expect_places({12}, 0, 16);
  expect_places({12, 400}, 1, 16);
}

TEST(Pieces, CoverARunOnce) {
  for (const std::size_t bytes : {0, 1, 63, 64, 65, 1000}) {
    std::size_t end = 0;
    for (std::int64_t i = 0; i < pieces_of(bytes, 64); ++i) {
      const PieceRange range(bytes, i, 64);
      EXPECT_EQ(range.begin, end);
      EXPECT_GT(range.bytes, 0u);
      end = range.begin + range.bytes;
    }
    EXPECT_EQ(end, bytes);
    EXPECT_EQ(PieceRange(bytes, pieces_of(bytes, 64), 64).bytes, 0u) << "after the end";
  }
}

TEST(Pieces, FitTheSlotsOfARing) {
  for (std::size_t bytes = 1; bytes < (std::size_t{1} << 40); bytes *= 3) EXPECT_LE(step_of(bytes), kPieceBytes);
}

}  // namespace
}  // namespace phalanx::shared_memory
