// SPDX-License-Identifier: Apache-2.0
#include "datasets/digits/glyphs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace phalanx {
namespace {

template <class Check>
void for_each_stroke(Check check) {
  for (int digit = 0; digit < kDigits; ++digit) {
    for (const auto& glyph : handwriting(digit)) {
      for (const auto& stroke : glyph) {
        SCOPED_TRACE(digit);
        check(stroke);
      }
    }
  }
}

TEST(Glyphs, HaveSeveralWaysForEveryDigit) {
  for (int digit = 0; digit < kDigits; ++digit) EXPECT_GE(handwriting(digit).size(), 3) << digit;
}

TEST(Glyphs, LieInTheUnitSquare) {
  for_each_stroke([](const Stroke& stroke) {
    for (const auto [x, y] : stroke) {
      EXPECT_TRUE(x > -0.06f && x < 1.06f && y > -0.06f && y < 1.06f) << x << ", " << y;
    }
  });
}

TEST(Glyphs, HaveNoGapsAlongAStroke) {
  for_each_stroke([](const Stroke& stroke) {
    for (std::size_t i = 1; i < stroke.size(); ++i) {
      EXPECT_LT(std::hypot(stroke[i].x - stroke[i - 1].x, stroke[i].y - stroke[i - 1].y), 0.25f);
    }
  });
}

TEST(Glyphs, SpanTheHeight) {
  for (int digit = 0; digit < kDigits; ++digit) {
    for (const auto& glyph : handwriting(digit)) {
      float top = 1, bottom = 0;
      for (const auto& stroke : glyph) {
        for (const auto& point : stroke) {
          top = std::min(top, point.y);
          bottom = std::max(bottom, point.y);
        }
      }
      EXPECT_GT(bottom - top, 0.9f) << digit;
    }
  }
}

}  // namespace
}  // namespace phalanx
